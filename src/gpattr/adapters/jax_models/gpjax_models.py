"""Posteriors of GPJax 1.0: conditioned ones, or models with their data set."""

from __future__ import annotations

from operator import add, mul
from typing import Any

import numpy as np

from gpattr.adapters import translation
from gpattr.adapters.foreign import FLOAT32, with_note
from gpattr.adapters.registry import Adapted
from gpattr.adapters.translation import Here, KernelTable, Rule, combined, polynomial, rule, twice
from gpattr.exceptions import InvalidInputError, UnsupportedModelError
from gpattr.kernels import (
    Constant,
    Kernel,
    Linear,
    Matern12,
    Matern32,
    Matern52,
    Periodic,
    RationalQuadratic,
    SquaredExponential,
)
from gpattr.means import Constant as ConstantMean
from gpattr.means import Mean, Zero
from gpattr.posteriors import ExactPosterior, SparsePosterior


def model(model: Any, data: Any = None) -> Adapted:
    """Return the posterior of a model that was fitted, conditioned on its data set, ``data``."""
    if data is None:
        raise InvalidInputError(
            "data: GPJax models do not keep their data; pass the Dataset: as_posterior(model,"
            " data=dataset)"
        )
    return exact(model.condition(_dataset(data)))


def exact(posterior: Any, data: Any = None) -> Adapted:
    """Return the posterior of ``model.condition(dataset)``."""
    X, y = (
        np.asarray(part, dtype=np.float64)
        for part in (posterior.train_data.X, posterior.train_data.y)
    )
    kernel, mean = (
        KERNELS.translate(posterior.prior.kernel, X.shape[1]),
        _mean(posterior.prior.mean_function),
    )
    if y.ndim == 2 and y.shape[1] > 1:
        raise UnsupportedModelError("train_data: several outputs are not supported")
    noise = value(posterior.likelihood.obs_stddev) ** 2 + float(posterior.prior.jitter)
    single = str(posterior.cholesky_factor.dtype) == "float32"
    ours = ExactPosterior(kernel, X, y.reshape(-1), noise=noise, mean=mean)
    return _finished(ours, posterior, X, single)


def sparse(posterior: Any, data: Any = None) -> Adapted:
    """Return the posterior of a variational family that was conditioned."""
    root = np.asarray(posterior.variational_root, dtype=np.float64)
    return _inducing(posterior, posterior.variational_mean, root, bool(posterior.whitened))


def collapsed(posterior: Any, data: Any = None) -> Adapted:
    """Return the posterior of a collapsed variational family.

    q(u) has a closed form, from A = L⁻¹k(Z, X)/σ and B = I + AAᵀ.
    """
    LB, A = (
        np.asarray(part, dtype=np.float64)
        for part in (posterior.cholesky_b, posterior.scaled_cross)
    )
    residual = np.asarray(posterior.residual, dtype=np.float64).reshape(-1)
    root = np.linalg.inv(LB).T
    sigma = float(
        np.sqrt(np.asarray(posterior.observation_variance, dtype=np.float64).reshape(-1)[0])
    )
    return _inducing(posterior, root @ (root.T @ (A @ residual)) / sigma, root, True)


def unconditioned(family: Any, data: Any = None) -> Adapted:
    """Raise an error that explains that a variational family must be conditioned first."""
    raise InvalidInputError("model: expected a conditioned family; pass family.condition(dataset)")


def _inducing(posterior: Any, q_mean: Any, root: np.ndarray, whitened: bool) -> Adapted:
    Z, prior = np.asarray(posterior.inducing_inputs, dtype=np.float64), posterior.model.prior
    kernel, mean = KERNELS.translate(prior.kernel, Z.shape[1]), _mean(prior.mean_function)
    jitter = float(prior.jitter)
    q_mean = np.asarray(q_mean, dtype=np.float64).reshape(-1)
    ours = SparsePosterior(
        kernel, Z, q_mean, q_root=root, whitened=whitened, mean=mean, jitter=jitter
    )
    return _finished(ours, posterior, Z, str(posterior.cholesky_kzz.dtype) == "float32")


def _active(kernel: Any, d: int) -> list[int]:
    """Return the columns of a kernel: positions among all, of which a combination sees all."""
    active = kernel.active_dims
    return list(range(d))[active] if isinstance(active, slice) else [int(i) % d for i in active]


def value(parameter: Any) -> Any:
    """Return a parameter as a float, or an array of one number for each feature."""
    from gpjax.parameters import val

    return translation.value(np.asarray(val(parameter)).reshape(-1))


def _differentiated(kernel: Any, here: Here) -> Kernel:
    """Return a kernel without a translation, as a function of the columns that it uses."""
    import jax.numpy as jnp

    from gpattr.adapters.jax_models.automatic import features_of, in_double, kernel_of

    double, name = in_double(kernel), type(kernel).__name__
    if name == "White":
        raise here.refusal(
            "GPJax's White is part of the function wherever inputs are equal; use the likelihood's"
            " noise"
        )

    def placed(x: Any) -> Any:
        """Return a point of all columns, from which the kernel takes its own."""
        return jnp.zeros(here.width).at[jnp.asarray(here.columns)].set(x)

    if name == "RFF":
        root = np.sqrt(value(kernel.base_kernel.variance) / kernel.num_basis_fns)
        return features_of(name, lambda x: root * double.compute_features(placed(x)[None])[0])
    scale = getattr(kernel, "lengthscale", None)
    hint = None if scale is None else float(np.min(value(scale)))
    return kernel_of(name, lambda x, y: double(placed(x), placed(y)), hint)


def _polynomial(kernel: Any, here: Here) -> Kernel:
    return polynomial(int(kernel.degree), value(kernel.shift), value(kernel.variance))


def _radial(kind: Any, **more: str) -> Rule:
    return rule(kind, lengthscale="lengthscale", variance="variance", **more)


KERNELS = KernelTable(
    "GPJax's",
    {
        "RBF": _radial(SquaredExponential),
        "Matern12": _radial(Matern12),
        "Matern32": _radial(Matern32),
        "Matern52": _radial(Matern52),
        "RationalQuadratic": _radial(RationalQuadratic, alpha="alpha"),
        # exp(−½ Σ sin²(πδ/p)/ℓ²)
        "Periodic": rule(
            Periodic, lengthscale=("lengthscale", twice), period="period", variance="variance"
        ),
        "Linear": rule(Linear, variance="variance"),
        "Polynomial": _polynomial,
        "Constant": rule(Constant, variance="constant"),
        "RFF": _differentiated,
        "SumKernel": combined(add, "kernels"),
        "ProductKernel": combined(mul, "kernels"),
    },
    module="gpjax.",
    read=lambda kernel, name, here: value(getattr(kernel, name)),
    columns=_active,
    whole=("SumKernel", "ProductKernel"),
    other=_differentiated,
)


def _mean(mean: Any) -> Mean:
    name = type(mean).__name__
    if name == "Zero":
        return Zero()
    if name == "Constant":
        return ConstantMean(value(mean.constant))
    from gpattr.adapters.jax_models.automatic import in_double, mean_of

    double = in_double(mean)
    return mean_of(name, lambda x: double(x[None]))


def _dataset(data: Any) -> Any:
    if not isinstance(data, tuple):
        return data
    import gpjax
    import jax.numpy as jnp

    X, y = data
    if np.size(y) != len(X):
        raise InvalidInputError(
            f"data: expected {len(X)} targets, one for each row of X, got {np.size(y)}"
        )
    return gpjax.Dataset(X=jnp.asarray(X), y=jnp.asarray(y).reshape(len(X), -1))


def _finished(ours: Any, posterior: Any, points: np.ndarray, single: bool) -> Adapted:
    prior = posterior.prior if hasattr(posterior, "prior") else posterior.model.prior
    jitter = float(prior.jitter)  # added by the library to the variances it reports

    def jointly(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        import jax.numpy as jnp

        result = posterior.predict(jnp.asarray(rows), covariance="dense")
        mean, cov = (
            np.asarray(result.mean, dtype=np.float64),
            np.asarray(result.covariance(), dtype=np.float64),
        )
        return mean.reshape(-1), cov - jitter * np.eye(len(rows))

    def predict(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, cov = jointly(rows)
        return mean, cov.diagonal()

    likelihood = type(
        posterior.likelihood if hasattr(posterior, "likelihood") else posterior.model.likelihood
    ).__name__
    if likelihood != "Gaussian":
        ours = with_note(ours, f"of the latent function: the likelihood is {likelihood}")
    if single:
        ours = with_note(ours, FLOAT32)
    accuracy = float(np.finfo(np.float32 if single else np.float64).eps)
    return Adapted(ours, predict, points, accuracy=accuracy, joint=lambda rows: jointly(rows)[1])
