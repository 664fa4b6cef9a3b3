"""Gaussian processes of PyMC, at one value of the parameters or over the draws of a trace.

A model of PyMC is symbolic: its kernel has random variables for parameters. ``point`` gives their
values, such as those that ``pm.find_MAP`` returns; ``trace`` gives draws of them, and the posterior
is then the mixture of the posteriors at the draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from gpattr._core.validation import check_count
from gpattr.adapters.registry import Adapted
from gpattr.adapters.translation import Here, KernelTable, Rule, polynomial, rule, twice
from gpattr.exceptions import InvalidInputError, NotFittedError, UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Cosine,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
    Warped,
    White,
)
from gpattr.kernels.white import fold_white
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear as LinearMean
from gpattr.means import Mean, Zero
from gpattr.posteriors import ExactPosterior, MixturePosterior, Posterior, SparsePosterior

DRAWS = 50  # of a trace, unless told
JITTER = 1e-6  # which PyMC adds to the covariance of the data when it predicts


def marginal(
    model: Any, data: Any = None, *, point: Any = None, trace: Any = None, draws: int = DRAWS
) -> Adapted:
    """Return the posterior of a `gp.Marginal` after `marginal_likelihood`.

    The parameters come from ``point``, a dictionary, or from ``draws`` evenly spaced points of
    ``trace``.
    """
    _require(model, "y", "marginal_likelihood")
    sigma = model.sigma
    if type(sigma).__name__ != "WhiteNoise":
        raise UnsupportedModelError(
            f"sigma: noise with the covariance {type(sigma).__name__} is not supported; give a"
            " standard deviation"
        )

    def posterior(at: _Values, X: np.ndarray) -> Posterior:
        y, noise = np.ravel(at("y")), at("sigma") ** 2 + JITTER
        return ExactPosterior(_kernel(model, at, X), X, y, noise=noise, mean=_mean(model, at))

    parts = {"y": model.y, "sigma": sigma.sigma}
    predictions = lambda new: model._predict_at(new, diag=True)  # noqa: E731
    return _adapted(model, parts, posterior, predictions, _points(point, trace, draws))


def approximate(
    model: Any, data: Any = None, *, point: Any = None, trace: Any = None, draws: int = DRAWS
) -> Adapted:
    """Return the sparse posterior of a `gp.MarginalApprox`: FITC, VFE or DTC."""
    _require(model, "y", "marginal_likelihood")

    def posterior(at: _Values, X: np.ndarray) -> Posterior:
        kernel, Z = _kernel(model, at, X), np.asarray(at("Xu"))
        noise = np.ravel(at("sigma") ** 2)
        smooth, white = fold_white(kernel, Z)
        if smooth is None:
            raise UnsupportedModelError("cov_func: WhiteNoise alone has no function to explain")
        jitter = JITTER + float(white.mean())
        if model.approx == "FITC":
            L = np.linalg.cholesky(smooth(Z, Z) + jitter * np.eye(len(Z)))
            T = solve_triangular(L, smooth(Z, X), lower=True)
            noise = noise + np.maximum(kernel.diagonal(X) - (T**2).sum(axis=0), 0.0)
        return SparsePosterior.fit(
            smooth, Z, X, np.ravel(at("y")), noise=noise, mean=_mean(model, at), jitter=jitter
        )

    parts = {"y": model.y, "sigma": model.sigma, "Xu": model.Xu}
    predictions = lambda new: model._predict_at(new, diag=True)  # noqa: E731
    return _adapted(model, parts, posterior, predictions, _points(point, trace, draws))


def latent(
    model: Any, data: Any = None, *, point: Any = None, trace: Any = None, draws: int = DRAWS
) -> Adapted:
    """Return the posterior of a `gp.Latent` given its values at the training inputs.

    Those are part of ``point``, or of every draw of ``trace``.
    """
    _require(model, "f", "prior")

    def posterior(at: _Values, X: np.ndarray) -> Posterior:
        f = np.asarray(at("f"))
        if f.ndim != 1:
            raise UnsupportedModelError("n_outputs: several outputs of gp.Latent are not supported")
        return ExactPosterior(_kernel(model, at, X), X, f, noise=JITTER, mean=_mean(model, at))

    def predictions(new: Any) -> Any:
        mean, cov = model._build_conditional(new, *model._get_given_vals(None), JITTER)
        return mean, cov.diagonal()

    return _adapted(model, {"f": model.f}, posterior, predictions, _points(point, trace, draws))


def student(model: Any, data: Any = None) -> Adapted:
    """Refuse a Student's t process, which is derived from `gp.Latent`."""
    raise UnsupportedModelError("model: PyMC's TP is a Student's t process, and not Gaussian")


def _require(model: Any, attribute: str, method: str) -> None:
    try:
        getattr(model, attribute)
    except AttributeError:
        raise NotFittedError(
            f"model: this gp.{type(model).__name__} has no data yet; call {method} first"
        ) from None


def _points(point: Any, trace: Any, draws: int) -> list[dict[str, np.ndarray]]:
    """Return the values of the parameters, one dictionary for each member of a mixture."""
    draws = check_count("draws", draws)
    if point is not None and trace is not None:
        raise InvalidInputError("point: expected point or trace, not both")
    if trace is None:
        if point is not None and not isinstance(point, Mapping):
            raise InvalidInputError(
                f"point: expected a dictionary of parameters, got a {type(point).__name__}"
            )
        return [{name: np.asarray(value) for name, value in (point or {}).items()}]
    samples = getattr(trace, "posterior", trace)
    if not hasattr(samples, "data_vars"):
        raise InvalidInputError(
            "trace: expected what pm.sample returns, with a group `posterior`, got a"
            f" {type(trace).__name__}"
        )
    flat = {
        str(name): np.asarray(values).reshape(-1, *values.shape[2:])
        for name, values in samples.data_vars.items()
    }
    n = len(next(iter(flat.values())))
    chosen = np.unique(np.linspace(0, n - 1, min(draws, n)).round().astype(int))
    return [{name: values[i] for name, values in flat.items()} for i in chosen.tolist()]


@dataclass(frozen=True)
class _Values:
    """The values of symbolic parts at one point, by name, or by owner and attribute."""

    values: Mapping[Any, Any]

    def __call__(self, *key: Any) -> Any:
        """Return a part in float64: a float, or an array."""
        found = self.values[key[0] if len(key) == 1 else (id(key[0]), key[1])]
        array = np.asarray(found, dtype=np.float64)
        return float(array.ravel()[0]) if array.size == 1 and array.ndim < 2 else array


def _adapted(
    model: Any,
    parts: dict[Any, Any],
    posterior: Callable[[_Values, np.ndarray], Posterior],
    predictions: Callable[[Any], Any],
    points: Sequence[dict[str, np.ndarray]],
) -> Adapted:
    import pytensor.tensor as pt  # pyright: ignore[reportMissingImports]

    symbols = {
        "X": model.X,
        **parts,
        **dict(_parts(model.cov_func)),
        **dict(_parts(model.mean_func)),
    }
    evaluate = _compiled(list(symbols.values()), points[0])
    values = [_Values(dict(zip(symbols, evaluate(point), strict=True))) for point in points]
    X = np.asarray(values[0].values["X"], dtype=np.float64)
    posteriors = [posterior(at, X) for at in values]
    new = pt.matrix("new rows", dtype="float64")
    predicted = _compiled(list(predictions(new)), points[0], [new])

    def predict(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        moments = [predicted(point, rows) for point in points]
        means = np.stack([np.ravel(mean) for mean, _ in moments])
        variances = np.stack([np.ravel(variance) for _, variance in moments])
        for at, variance in zip(values, variances, strict=True):
            variance -= fold_white(_kernel(model, at, X), rows)[1]
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)

    result = posteriors[0] if len(posteriors) == 1 else MixturePosterior(posteriors)
    return Adapted(result, predict, X)


def _compiled(
    outputs: list[Any], point: Mapping[str, Any], more: Sequence[Any] = ()
) -> Callable[..., list[Any]]:
    """Return the function from a point, and further inputs, to the values of symbolic outputs."""
    import pytensor  # pyright: ignore[reportMissingImports]
    import pytensor.tensor as pt  # pyright: ignore[reportMissingImports]
    from pytensor.graph.traversal import ancestors  # pyright: ignore[reportMissingImports]
    from pytensor.tensor.random.op import RandomVariable  # pyright: ignore[reportMissingImports]

    tensors = [pt.as_tensor_variable(part) for part in outputs]
    inputs = list({v.name: v for v in ancestors(tensors) if v.name in point}.values())
    missing = {
        str(v.name)
        for v in ancestors(tensors, blockers=[*inputs, *more])
        if v.owner is not None and isinstance(v.owner.op, RandomVariable) and v not in inputs
    }
    if missing:
        raise InvalidInputError(
            f"point: expected values of {', '.join(sorted(missing))}; give point= (what pm.find_MAP"
            " returns) or trace= (what pm.sample returns)"
        )
    for v in inputs:
        shape, given = v.type.shape, np.shape(point[v.name])  # a length that may vary is None
        if len(shape) != len(given) or any(
            n not in (None, k) for n, k in zip(shape, given, strict=True)
        ):
            raise InvalidInputError(
                f"point: expected {v.name!r} of the shape {shape}, got one of the shape {given}"
            )
    function = pytensor.function(
        [*inputs, *more],
        tensors,
        on_unused_input="ignore",
        mode="FAST_COMPILE",
        allow_input_downcast=True,
    )
    return lambda at, *rows: function(*(at[v.name] for v in inputs), *rows)


def _parts(owner: Any) -> Iterator[tuple[tuple[int, Any], Any]]:
    """Return the symbolic parts of a kernel or a mean, by owner and attribute."""
    name = type(owner).__name__
    for attribute in PARAMETERS.get(name, ()):
        if hasattr(owner, attribute):
            yield (id(owner), attribute), getattr(owner, attribute)
    if name in ("Add", "Prod") and hasattr(owner, "_factor_list"):
        for i, factor in enumerate(owner._factor_list):
            if hasattr(factor, "full"):
                yield from _parts(factor)
            else:
                yield (id(owner), i), factor
    for attribute in ("cov_func", "kernel", "m1", "m2"):
        if hasattr(owner, attribute):
            yield from _parts(getattr(owner, attribute))


PARAMETERS: dict[str, tuple[str, ...]] = {
    "ExpQuad": ("ls",),
    "Matern12": ("ls",),
    "Matern32": ("ls",),
    "Matern52": ("ls",),
    "Exponential": ("ls",),
    "Cosine": ("ls",),
    "RatQuad": ("ls", "alpha"),
    "Periodic": ("ls", "period"),
    "WrappedPeriodic": ("period",),
    "Polynomial": ("c", "d", "offset"),
    "WhiteNoise": ("sigma",),
    "Exponentiated": ("power",),
    "Constant": ("c",),
    "Linear": ("c", "A", "b"),  # a covariance has a centre, a mean slopes and an intercept
}


def _kernel(model: Any, at: _Values, X: np.ndarray) -> Kernel:
    return KERNELS.translate(model.cov_func, X.shape[1], at)


def _combination(combine: Any) -> Rule:
    """Return the rule for a sum or a product, of which factors may be numbers."""

    def translated(cov: Any, here: Here) -> Kernel:
        parts: list[Any] = [
            here.part(factor) if hasattr(factor, "full") else _number(cov, i, here)
            for i, factor in enumerate(cov._factor_list)
        ]
        return reduce(combine, parts)

    return translated


def _number(cov: Any, i: int, here: Here) -> Kernel:
    """Return a factor that is a number."""
    found = here.state(cov, i)
    if not isinstance(found, float):
        raise here.refusal(
            f"an array of shape {np.shape(found)} as a part of {type(cov).__name__} is not"
            " supported"
        )
    return Constant(found)


def _wave(cov: Any, here: Here) -> Kernel:
    """cos(2πδ/ℓ)."""
    here.require_one_column("Cosine")
    return Cosine(here.value(cov, "ls"))


def _wrapped(cov: Any, here: Here) -> Kernel:
    """exp(−½ Σ sin²(πδ/p)/ℓ²), of a squared exponential; others are not smooth."""
    base = type(cov.cov_func).__name__
    if base != "ExpQuad":
        raise here.refusal(f"WrappedPeriodic of {base} is not supported")
    return Periodic(twice(here.value(cov.cov_func, "ls")), here.value(cov, "period"))


def _linear(cov: Any, here: Here) -> Kernel:
    """(x − c)ᵀ(x' − c)."""
    return _centred(Linear(), here.value(cov, "c"))


def _polynomial(cov: Any, here: Here) -> Kernel:
    """((x − c)ᵀ(x' − c) + offset)^degree."""
    degree = here.whole_power("Polynomial of degree", here.value(cov, "d"), "degree")
    return _centred(polynomial(degree, here.value(cov, "offset")), here.value(cov, "c"))


def _centred(kernel: Kernel, centre: Any) -> Kernel:
    """Return k(x − c, x' − c)."""
    if not np.any(centre):
        return kernel
    return Warped(
        kernel,
        lambda X: X - centre,
        lambda X: np.broadcast_to(np.eye(X.shape[-1]), (*X.shape, X.shape[-1])),
    )


def _power(cov: Any, here: Here) -> Kernel:
    power = here.whole_power("a covariance to the power", here.value(cov, "power"), "power")
    parts: list[Any] = [here.part(cov.kernel)] * power
    return reduce(mul, parts)


KERNELS = KernelTable(
    "PyMC's",
    {
        "ExpQuad": rule(SquaredExponential, lengthscale="ls"),
        "Matern12": rule(Matern12, lengthscale="ls"),
        "Matern32": rule(Matern32, lengthscale="ls"),
        "Matern52": rule(Matern52, lengthscale="ls"),
        "Exponential": rule(Matern12, lengthscale=("ls", twice)),  # exp(−r/2)
        "RatQuad": rule(RationalQuadratic, lengthscale="ls", alpha="alpha"),
        # exp(−½ Σ sin²(πδ/p)/ℓ²)
        "Periodic": rule(Periodic, lengthscale=("ls", twice), period="period"),
        "WrappedPeriodic": _wrapped,
        "Cosine": _wave,
        "Linear": _linear,
        "Polynomial": _polynomial,
        "Constant": rule(Constant, variance="c"),
        "WhiteNoise": rule(White, variance=("sigma", lambda sigma: sigma**2)),
        "Exponentiated": _power,
        "Add": _combination(add),
        "Prod": _combination(mul),
    },
    argument="cov_func",
    read=lambda cov, name, here: here.state(cov, name),
    columns=lambda cov, d: [int(column) for column in cov.active_dims],
    whole=("Add", "Prod", "Constant", "WhiteNoise", "Exponentiated"),
)


def _mean(model: Any, at: _Values) -> Mean:
    return _translated_mean(model.mean_func, at, np.shape(at.values["X"])[1])


def _translated_mean(mean: Any, at: _Values, d: int) -> Mean:
    name = type(mean).__name__
    if name == "Zero":
        return Zero()
    if name == "Constant":
        return ConstantMean(at(mean, "c"))
    if name == "Linear":
        slopes = np.broadcast_to(np.ravel(at(mean, "A")), (d,))
        return LinearMean(slopes, at(mean, "b"))
    if name == "Add":
        one, two = (_translated_mean(part, at, d) for part in (mean.m1, mean.m2))
        origin = np.zeros((1, d))
        slopes = np.ravel(one.gradient(origin)) + np.ravel(two.gradient(origin))
        return LinearMean(slopes, float(one(origin)[0] + two(origin)[0]))
    raise UnsupportedModelError(f"mean_func: PyMC's {name} is not supported")
