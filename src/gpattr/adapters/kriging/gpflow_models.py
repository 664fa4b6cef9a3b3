"""Models of GPflow: exact, collapsed sparse and variational."""

from __future__ import annotations

from operator import add, mul
from typing import Any

import numpy as np

from gpattr.adapters.foreign import FLOAT32, one_or_several, with_note
from gpattr.adapters.registry import Adapted
from gpattr.adapters.translation import (
    Here,
    KernelTable,
    Rule,
    combined,
    polynomial,
    rule,
    twice,
    value,
)
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
    RationalQuadratic,
    SquaredExponential,
    White,
)
from gpattr.kernels.white import fold_white
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear as LinearMean
from gpattr.means import Mean, Zero
from gpattr.posteriors import ExactPosterior, SparsePosterior


def array(tensor: Any) -> np.ndarray:
    """Return a tensor in float64."""
    return np.asarray(tensor).astype(np.float64)  # asarray with a dtype fails on a parameter


def exact(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a `GPR`; of several columns of targets, one output for each."""
    X, Y = (array(part) for part in model.data)
    kernel = KERNELS.translate(model.kernel, X.shape[1])
    first = ExactPosterior(
        kernel, X, Y[:, 0], noise=_noise(model, X), mean=_mean(model.mean_function, 0)
    )
    others = [
        first.given(Y[:, o], mean=_mean(model.mean_function, o)) for o in range(1, Y.shape[1])
    ]
    return _finished(model, kernel, [first, *others], X)


def collapsed(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of an `SGPR`: the best q(u), in closed form."""
    X, Y = (array(part) for part in model.data)
    Z, kernel = _inducing(model), KERNELS.translate(model.kernel, X.shape[1])
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
    Z = array(model.data[0]) if at_rows else _inducing(model)
    kernel = KERNELS.translate(model.kernel, Z.shape[1])
    smooth, jitter = _smooth(kernel, Z)
    q_mean, root = array(model.q_mu), array(model.q_sqrt)
    whitened = at_rows or bool(model.whiten)
    reference_points = {"mean": Z.mean(axis=0), "median": np.median(Z, axis=0)} if at_rows else None
    posteriors = []
    for o in range(q_mean.shape[1]):
        mean = _mean(model.mean_function, o)
        # Unwhitened, the library's q(u) describes f(Z) − m₀(Z).
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


def _periodic(kernel: Any, here: Here) -> Kernel:
    """exp(−½ Σ sin²(πδ/p)/ℓ²), of a squared exponential; other bases are not smooth."""
    base = kernel.base_kernel
    if type(base).__name__ != "SquaredExponential":
        raise here.refusal(f"GPflow's Periodic of {type(base).__name__} is not supported")
    return Periodic(twice(value(base.lengthscales)), value(kernel.period), value(base.variance))


def _polynomial(kernel: Any, here: Here) -> Kernel:
    degree = here.whole_power("Polynomial of degree", float(kernel.degree), "degree")
    return polynomial(degree, value(kernel.offset), value(kernel.variance))


def _active(kernel: Any, d: int) -> list[int]:
    """Return the columns of a kernel: positions among all, of which a combination sees all."""
    try:
        return np.arange(d)[kernel.active_dims].tolist()
    except IndexError:
        raise UnsupportedModelError(
            f"kernel: {type(kernel).__name__} uses columns {kernel.active_dims}, but there are {d}"
        ) from None


def _radial(kind: Any, **more: str) -> Rule:
    return rule(kind, lengthscale="lengthscales", variance="variance", **more)


KERNELS = KernelTable(
    "GPflow's",
    {
        "SquaredExponential": _radial(SquaredExponential),
        "Matern12": _radial(Matern12),
        "Matern32": _radial(Matern32),
        "Matern52": _radial(Matern52),
        # exp(−r/2)
        "Exponential": rule(Matern12, lengthscale=("lengthscales", twice), variance="variance"),
        "RationalQuadratic": _radial(RationalQuadratic, alpha="alpha"),
        "Periodic": _periodic,
        "Cosine": rule(Cosine, period="lengthscales", variance="variance"),
        "Linear": rule(Linear, variance="variance"),
        "Polynomial": _polynomial,
        "Constant": rule(Constant, variance="variance"),
        "White": rule(White, variance="variance"),
        "Sum": combined(add, "kernels"),
        "Product": combined(mul, "kernels"),
    },
    module="gpflow.kernels",
    columns=_active,
    whole=("Sum", "Product"),
)


def _noise(model: Any, X: np.ndarray) -> np.ndarray:
    return array(model.likelihood.variance_at(model.data[0])).reshape(len(X))


def _mean(mean: Any, output: int) -> Mean:
    name = type(mean).__name__
    if name == "Zero":
        return Zero()
    if name == "Constant":
        values = np.atleast_1d(array(mean.c))
        return ConstantMean(float(values[output if len(values) > 1 else 0]))
    if name == "Linear":
        A, b = array(mean.A), np.atleast_1d(array(mean.b))
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
    return array(variable.Z)


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
    dtype = np.dtype(
        next(part.dtype for part in model.parameters if part.dtype.is_floating).as_numpy_dtype
    )

    def predict(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, var = (array(part) for part in model.predict_f(rows.astype(dtype)))
        var = var - fold_white(kernel, rows)[1][:, None]  # which the library adds to variances
        return mean, var

    result = one_or_several(posteriors)
    if dtype == np.float32:
        result = with_note(result, FLOAT32)
    return Adapted(result, predict, points, accuracy=float(np.finfo(dtype).eps))
