"""Models of GPflow: exact, collapsed sparse and variational."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import add, mul
from typing import Any

import numpy as np

from gpattr.adapters.notes import FLOAT32, with_note
from gpattr.adapters.registry import Adapted
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Cosine,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Select,
    SquaredExponential,
    White,
)
from gpattr.kernels.white import fold_white
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear as LinearMean
from gpattr.means import Mean, Zero
from gpattr.posteriors import ExactPosterior, MultiOutputPosterior, Posterior, SparsePosterior


def exact(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `GPR`; of several columns of targets, one output for each."""
    X, Y = (value(part) for part in model.data)
    kernel = translate(model.kernel, X.shape[1])
    first = ExactPosterior(
        kernel, X, Y[:, 0], noise=_noise(model, X), mean=_mean(model.mean_function, 0)
    )
    others = [
        first.given(Y[:, o], mean=_mean(model.mean_function, o)) for o in range(1, Y.shape[1])
    ]
    return _finished(model, kernel, [first, *others], X)


def collapsed(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of an `SGPR`: the best q(u), in closed form."""
    X, Y = (value(part) for part in model.data)
    Z, kernel = _inducing(model), translate(model.kernel, X.shape[1])
    smooth, jitter = _smooth(kernel, Z)
    noise = _noise(model, X)
    posteriors = [
        SparsePosterior.fit(
            smooth, Z, X, Y[:, o], noise=noise, mean=_mean(model.mean_function, o), jitter=jitter
        )
        for o in range(Y.shape[1])
    ]
    return _finished(model, kernel, posteriors, X)


def variational(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of the latent function of an `SVGP` or a `VGP`.

    The inducing inputs of a `VGP` are its training inputs.
    """
    at_rows = hasattr(model, "data")
    Z = value(model.data[0]) if at_rows else _inducing(model)
    kernel = translate(model.kernel, Z.shape[1])
    smooth, jitter = _smooth(kernel, Z)
    q_mean, root = value(model.q_mu), value(model.q_sqrt)
    whitened = at_rows or bool(model.whiten)
    reference_points = {"mean": Z.mean(axis=0), "median": np.median(Z, axis=0)} if at_rows else None
    posteriors = []
    for o in range(q_mean.shape[1]):
        mean = _mean(model.mean_function, o)
        # Unwhitened, the library's q(u) is that of f(Z) − m₀(Z).
        centre = q_mean[:, o] if whitened else q_mean[:, o] + mean(Z)
        q_root = np.diag(root[:, o]) if root.ndim == 2 else root[o]
        q: dict[str, Any] = {
            "q_root": q_root,
            "whitened": whitened,
            "jitter": jitter,
            "reference_points": reference_points,
        }
        posteriors.append(SparsePosterior(smooth, Z, centre, mean=mean, **q))
    if type(model.likelihood).__name__ != "Gaussian":
        note = f"of the latent function: the likelihood is {type(model.likelihood).__name__}"
        posteriors = [with_note(posterior, note) for posterior in posteriors]
    return _finished(model, kernel, posteriors, Z)


def translate(kernel: Any, d: int) -> Kernel:
    """Return a GPflow kernel on d features.

    ``active_dims`` are positions among all of them; a combination has none of its own.
    """
    name = type(kernel).__name__
    if not type(kernel).__module__.startswith("gpflow.kernels"):
        raise UnsupportedModelError(f"kernel: {type(kernel).__module__}.{name} is not supported")
    if name in ("Sum", "Product"):
        parts: list[Any] = [translate(part, d) for part in kernel.kernels]
        return reduce(add if name == "Sum" else mul, parts)
    try:
        features = np.arange(d)[kernel.active_dims].tolist()
    except IndexError:
        raise UnsupportedModelError(
            f"kernel: {name} uses columns {kernel.active_dims}, but there are {d}"
        ) from None
    if name not in KERNELS:
        raise UnsupportedModelError(f"kernel: GPflow's {name} is not supported")
    inner = KERNELS[name](kernel)
    return inner if features == list(range(d)) else Select(inner, features)


def _radial(kind: Any, stretch: float = 1.0) -> Callable[[Any], Kernel]:
    return lambda kernel: kind(stretch * value(kernel.lengthscales), value(kernel.variance))


def _rational_quadratic(kernel: Any) -> Kernel:
    return RationalQuadratic(
        value(kernel.lengthscales), value(kernel.variance), alpha=value(kernel.alpha)
    )


def _periodic(kernel: Any) -> Kernel:
    """exp(−½ Σ sin²(πδ/p)/ℓ²), of a squared exponential; other bases are not smooth."""
    base = kernel.base_kernel
    if type(base).__name__ != "SquaredExponential":
        raise UnsupportedModelError(
            f"kernel: GPflow's Periodic of {type(base).__name__} is not supported"
        )
    return Periodic(2.0 * value(base.lengthscales), value(kernel.period), value(base.variance))


def _polynomial(kernel: Any) -> Kernel:
    degree, variance, offset = float(kernel.degree), value(kernel.variance), value(kernel.offset)
    if degree != round(degree) or degree < 1:
        raise UnsupportedModelError(
            f"kernel: Polynomial of degree {degree:g} is not supported; degrees are 1, 2, 3, …"
        )
    return (
        Polynomial(variance, degree=int(degree), offset=offset)
        if degree > 1
        else Linear(variance) + Constant(offset)
    )


KERNELS: dict[str, Callable[[Any], Kernel]] = {
    "SquaredExponential": _radial(SquaredExponential),
    "Matern12": _radial(Matern12),
    "Matern32": _radial(Matern32),
    "Matern52": _radial(Matern52),
    "Exponential": _radial(Matern12, 2.0),  # exp(−r/2)
    "RationalQuadratic": _rational_quadratic,
    "Periodic": _periodic,
    "Cosine": lambda kernel: Cosine(value(kernel.lengthscales), value(kernel.variance)),
    "Linear": lambda kernel: Linear(value(kernel.variance)),
    "Polynomial": _polynomial,
    "Constant": lambda kernel: Constant(value(kernel.variance)),
    "White": lambda kernel: White(value(kernel.variance)),
}


def value(parameter: Any) -> Any:
    """Return a parameter or a tensor in float64: a float, or an array."""
    array = np.asarray(parameter).astype(np.float64)  # asarray with a dtype fails on a parameter
    return float(array) if array.ndim == 0 else array


def _noise(model: Any, X: np.ndarray) -> np.ndarray:
    return value(model.likelihood.variance_at(model.data[0])).reshape(len(X))


def _mean(mean: Any, output: int) -> Mean:
    name = type(mean).__name__
    if name == "Zero":
        return Zero()
    if name == "Constant":
        values = np.atleast_1d(value(mean.c))
        return ConstantMean(float(values[output if len(values) > 1 else 0]))
    if name == "Linear":
        A, b = value(mean.A), np.atleast_1d(value(mean.b))
        return LinearMean(
            A[:, output if A.shape[1] > 1 else 0], float(b[output if len(b) > 1 else 0])
        )
    raise UnsupportedModelError(f"mean_function: GPflow's {name} is not supported")


def _inducing(model: Any) -> np.ndarray:
    variable = model.inducing_variable
    if type(variable).__name__ != "InducingPoints":
        raise UnsupportedModelError(
            f"inducing_variable: {type(variable).__name__} is not supported; use InducingPoints"
        )
    return value(variable.Z)


def _smooth(kernel: Kernel, Z: np.ndarray) -> tuple[Kernel, float]:
    """Return the kernel without White, and the variance to add to the diagonal of k(Z, Z).

    The latter is the library's jitter plus any White.
    """
    from gpflow.config import default_jitter  # pyright: ignore[reportMissingImports]  # NumPy 1

    smooth, white = fold_white(kernel, Z)
    if smooth is None:
        raise UnsupportedModelError("kernel: White alone has no function to explain")
    return smooth, float(default_jitter()) + float(white.mean())


def _finished(model: Any, kernel: Kernel, posteriors: list[Any], points: np.ndarray) -> Adapted:
    several = len(posteriors) > 1
    dtype = np.dtype(
        next(part.dtype for part in model.parameters if part.dtype.is_floating).as_numpy_dtype
    )

    def predict(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, var = (value(part) for part in model.predict_f(rows.astype(dtype)))
        var = var - fold_white(kernel, rows)[1][:, None]  # which the library adds to variances
        return (mean, var) if several else (mean[:, 0], var[:, 0])

    result: Posterior | MultiOutputPosterior = (
        MultiOutputPosterior(posteriors) if several else posteriors[0]
    )
    if dtype == np.float32:
        result = with_note(result, FLOAT32)
    return Adapted(result, predict, points, accuracy=float(np.finfo(dtype).eps))
