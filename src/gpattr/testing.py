"""Conformance suites that anyone can run on parts of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpattr import closed_forms
from gpattr._core.array import to_numpy
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import as_matrix, is_frame
from gpattr.adapters.adapt import adapt
from gpattr.adapters.verification import verify
from gpattr.closed_forms.derivatives import Jet, differentiate, require_derivatives
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel, SquaredExponential
from gpattr.operators import Baselines, Gradient, IntegratedGradients, Paths
from gpattr.posteriors import MultiOutputPosterior, Posterior
from gpattr.special.quadrature import gauss_legendre

__all__ = ["check_adapter", "check_kernel", "check_posterior"]

STEP = 6e-6  # ε^(1/3): where truncation and rounding of a central difference balance
# relative to the size of what is compared: finite differences, and everything else
LOOSE, TIGHT = 1e-5, 1e-9
BRUTE = 1e-3  # differences of samples of a rough kernel converge slowly


def check_kernel(
    kernel: Kernel, X: ArrayLike | None = None, *, random_state: RandomLike = 0
) -> None:
    """Check that a kernel can be trusted; raise ``AssertionError`` that names the law it breaks.

    Values are symmetric, agree with ``diagonal`` and are positive semi-definite; derivatives agree
    with the values, alone and inside a nested sum and product; attributions are complete, leave
    features that do not move at zero, and are the same by closed form and by quadrature. ``X`` (n,
    d) are rows in the range where the kernel is used; standard normal ones by default. A kernel
    without derivatives raises `UnsupportedModelError`.

    Examples
    --------
    >>> from gpattr.kernels import Matern52, SquaredExponential
    >>> from gpattr.testing import check_kernel
    >>> check_kernel(SquaredExponential() * Matern52())  # raises nothing: it passes
    """
    if not isinstance(kernel, Kernel):
        raise InvalidInputError(f"kernel: expected a gpattr kernel, got {type(kernel).__name__}")
    rng = random_generator(random_state)
    rows = rng.normal(size=(12, _features(kernel))) if X is None else to_numpy(as_matrix("X", X))
    if len(rows) < 4:
        raise InvalidInputError(f"X: expected at least 4 rows, got {len(rows)}")
    kernel.check_features(rows.shape[1])
    rows = rows[rng.permutation(len(rows))[:12]]
    _check_values(kernel, rows)
    require_derivatives(kernel)
    spread = float(rows.std()) or 1.0
    other = SquaredExponential(lengthscale=2.0 * spread)
    for name, expression in (
        ("", kernel),
        (" inside a nested sum and product", (kernel * other + 0.5 * kernel) * (other + 1.0)),
    ):
        _check_derivatives(expression, rows, STEP * spread, name)
    _check_attributions(kernel, rows)


def _features(kernel: Kernel) -> int:
    for d in (3, 1, 2, *range(4, 101)):
        try:
            kernel.check_features(d)
        except InvalidInputError:
            continue
        return d
    raise InvalidInputError("kernel: expected one that acts on at most 100 features; pass rows X")


def _agree(law: str, one: Any, two: Any, tolerance: float, size: float = 0.0) -> None:
    scale = max(float(np.abs(two).max()), size)
    worst = float(np.abs(one - two).max())
    assert worst <= tolerance * scale + 1e-300, (
        f"{law}: differs by {worst:.2g}, where {tolerance * scale:.2g} is allowed"
    )


def _check_values(kernel: Kernel, X: np.ndarray) -> None:
    n = len(X)
    K, half = kernel(X, X), kernel(X, X[: n // 2])
    assert (K.shape, half.shape) == (
        (n, n),
        (n, n // 2),
    ), f"values: expected (n, m), got {K.shape} and {half.shape}"
    assert np.isfinite(K).all(), "values: expected finite numbers"
    _agree("symmetry k(x, x') = k(x', x)", K, K.T, TIGHT)
    _agree("values of some rows are those of all", half[n // 2 :], K[n // 2 :, : n // 2], TIGHT)
    assert kernel.diagonal(X).shape == (n,), (
        f"diagonal: expected ({n},), got {kernel.diagonal(X).shape}"
    )
    _agree("diagonal = k(x, x)", kernel.diagonal(X), np.diagonal(K), TIGHT)
    lowest, highest = np.linalg.eigvalsh(K)[[0, -1]]
    assert lowest >= -1e-10 * highest, (
        f"positive definiteness: the kernel matrix has the eigenvalue {lowest:.2g}"
    )
    assert kernel.n_lengthscales(X).shape == (n,), (
        f"n_lengthscales: expected ({n},), got {np.shape(kernel.n_lengthscales(X))}"
    )


def _check_derivatives(kernel: Kernel, X: np.ndarray, step: float, where: str) -> None:
    x, y = X, np.roll(X, 1, axis=0)
    jet = differentiate(kernel, x, y, True)
    assert isinstance(jet, Jet), f"derivatives: expected a Jet, got {type(jet).__name__}"
    _agree(f"value of the derivatives{where}", jet.value, np.diagonal(kernel(x, y)), TIGHT)
    all_pairs = differentiate(kernel, x[:, None, :], y)
    _agree(
        f"first derivatives of all pairs{where}",
        all_pairs.left[range(len(x)), range(len(x))],
        jet.left,
        TIGHT,
    )
    size = float(np.abs(jet.value).max())
    same = differentiate(kernel, x, x, True)
    finite = all(np.isfinite(part).all() for both in (jet, same) for part in both)
    assert finite, f"derivatives{where}: expected finite numbers, at x = x' too"
    for i in range(x.shape[1]):
        move = step * np.eye(x.shape[1])[i]
        up, down = np.diagonal(kernel(x + move, y)), np.diagonal(kernel(x - move, y))
        _agree(
            f"∂k/∂x{i} against finite differences{where}",
            jet.left[:, i],
            (up - down) / (2 * step),
            LOOSE,
            size,
        )
        up, down = np.diagonal(kernel(x, y + move)), np.diagonal(kernel(x, y - move))
        _agree(
            f"∂k/∂x'{i} against finite differences{where}",
            jet.right[:, i],
            (up - down) / (2 * step),
            LOOSE,
            size,
        )
        up, down = (differentiate(kernel, x, y + sign * move).left for sign in (1, -1))
        _agree(
            f"∂²k/∂x∂x'{i} against finite differences{where}",
            jet.mixed[:, :, i],
            (up - down) / (2 * step),
            LOOSE,
            size,
        )


def _check_attributions(kernel: Kernel, X: np.ndarray) -> None:
    b, x, Z = X[0], X[1:4].copy(), X
    x[0, 0] = b[0]
    op, size = IntegratedGradients(b), float(np.abs(kernel(X, X)).max())
    cross, prior, between = (
        {method: verb(op, kernel, x, *more, method=method) for method in ("auto", "quadrature")}
        for verb, more in (
            (closed_forms.cross, (Z,)),
            (closed_forms.prior_cov, ()),
            (closed_forms.between, ()),
        )
    )
    for name, both in (("cross", cross), ("prior_cov", prior), ("between", between)):
        _agree(
            f"closed form against quadrature, {name}", both["auto"], both["quadrature"], TIGHT, size
        )
    gain = kernel(x, Z) - kernel(b[None], Z)
    _agree("completeness of the cross covariance", cross["auto"].sum(axis=1), gain, TIGHT, size)
    variance = kernel.diagonal(x) - 2 * kernel(x, b[None])[:, 0] + kernel.diagonal(b[None])
    _agree(
        "completeness of the prior covariance",
        prior["auto"].sum(axis=(1, 2)),
        variance,
        TIGHT,
        size,
    )
    across = kernel(x, x) - kernel(x, b[None]) - kernel(b[None], x) + kernel(b[None], b[None])
    _agree(
        "completeness of the covariance between rows",
        between["auto"].sum(axis=(1, 3)),
        across,
        TIGHT,
        size,
    )
    same = between["auto"][range(len(x)), :, range(len(x))]
    _agree("between a row and itself = prior_cov", same, prior["auto"], TIGHT, size)
    still = np.concatenate([cross["auto"][0, 0], prior["auto"][0, 0], prior["auto"][0, :, 0]])
    assert not still.any(), f"dummy: a feature that does not move gets {np.abs(still).max():.2g}"
    joint = between["auto"].reshape(len(x) * len(b), -1)
    lowest, highest = np.linalg.eigvalsh(0.5 * (joint + joint.T))[[0, -1]]
    assert lowest >= -1e-9 * max(highest, size), (
        f"attributions: their prior covariance has the eigenvalue {lowest:.2g}"
    )
    reverse = (
        closed_forms.formulas_for(op, kernel).prior_cov(Paths(x, np.broadcast_to(b, x.shape))).value
    )
    _agree("path reversal", reverse, prior["auto"], TIGHT, size)


def check_posterior(posterior: Posterior, X: ArrayLike, *, random_state: RandomLike = 0) -> None:
    """Check that a posterior can be trusted; raise ``AssertionError`` that names the law it breaks.

    Predictions agree with each other, whatever is asked for with them; attributions are complete
    in mean and in covariance, also between rows and over weighted baselines; they are the integral
    of the posterior's own gradients, within the error they state, and in mean and covariance what
    differences of its own predictions add up to; they leave features that do not move at zero,
    change sign with the path's direction, and do not depend on the other rows; draws have their
    mean and covariance. ``X`` (n, d) are at least 5 rows in the range where the posterior is used.
    Of several outputs each is checked.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.posteriors import ExactPosterior
    >>> from gpattr.testing import check_posterior
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> posterior = ExactPosterior(SquaredExponential(), X, X[:, 0], noise=0.1)
    >>> check_posterior(posterior, X[:6])  # raises nothing: it passes
    """
    if isinstance(posterior, MultiOutputPosterior):
        for output in posterior.outputs.values():
            check_posterior(output, X, random_state=random_state)
        _check_across(posterior, X)
        return
    if not isinstance(posterior, Posterior):
        raise InvalidInputError(
            f"posterior: expected a gpattr posterior, got {type(posterior).__name__}"
        )
    rows = to_numpy(posterior.rows("X", X))
    posterior = posterior.in_columns
    if len(rows) < 5:
        raise InvalidInputError(f"X: expected at least 5 rows, got {len(rows)}")
    generator = random_generator(random_state)
    rows = rows[generator.permutation(len(rows))[:6]]
    b, x = rows[0], rows[1:5].copy()
    x[0, 0] = b[0]
    mean, cov = _check_predictions(posterior, np.vstack([x, b]))
    _check_posterior_attributions(posterior, x, b, mean, cov)
    _check_several_baselines(posterior, x, rows)
    _check_integrals(posterior, x, b)
    _check_brute_force(posterior, x[1], b)
    _check_draws(posterior, x[:2], b, generator)
    _check_rows_covariance(posterior, x, rows)


def check_adapter(
    model: Any, X: ArrayLike, *, data: Any = None, random_state: RandomLike = 0, **options: Any
) -> None:
    """Check that a model of another library is understood; raise an error that names any defect.

    Its own predictive mean and variance agree with the posterior of its adapter, at training rows,
    between and beyond them, and at the rows of X, (n, d) with n ≥ 5; and that posterior passes
    `check_posterior`. Of a model with categories X is a table with them, or an array with their
    codes. ``data`` and further options are as for `gpattr.as_posterior`.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from gpattr.testing import check_adapter
    >>> X = np.random.default_rng(0).normal(size=(20, 2))
    >>> model = GaussianProcessRegressor(alpha=0.01).fit(X, X[:, 0])
    >>> check_adapter(model, X[:6])  # raises nothing: it passes
    """
    adapted = adapt(model, data=data, **options)
    posterior, name = adapted.posterior, type(model).__name__
    rows = _encoded(posterior, X)
    verify(adapted, name)
    verify(adapted, name, rows)
    check_posterior(posterior, rows, random_state=random_state)


def _encoded(posterior: Posterior, X: Any) -> np.ndarray:
    """Return rows as the posterior's columns, which may also be given directly."""
    encoder = posterior.encoder
    if encoder is None or is_frame(X) or np.shape(X)[-1:] != (len(encoder.names),):
        return to_numpy(posterior.rows("X", X))
    return to_numpy(posterior.rows("X", encoder.encode("X", X)))


def _check_across(posterior: MultiOutputPosterior, X: Any) -> None:
    rows = to_numpy(posterior.rows("X", X))
    operator, x = IntegratedGradients(rows[0]), rows[1:3]
    across = to_numpy(posterior.across(operator, x))
    n, d, P = len(x), posterior.n_features, len(posterior)
    assert across.shape == (
        n,
        d,
        P,
        d,
        P,
    ), f"across outputs: expected {(n, d, P, d, P)}, got {across.shape}"
    for o, output in enumerate(posterior.outputs.values()):
        expected = to_numpy(output.apply(operator, x).cov)
        _agree(
            "across outputs, between an output and itself", across[:, :, o, :, o], expected, TIGHT
        )
    whole = across.reshape(n, d * P, d * P)
    size = np.sqrt(np.maximum(np.diagonal(whole, axis1=1, axis2=2), 1e-300))
    lowest = np.linalg.eigvalsh(whole / size[:, :, None] / size[:, None, :]).min()
    assert lowest >= -TIGHT * d * P, (
        f"across outputs: the correlations have the eigenvalue {lowest:.2g}"
    )


def _check_predictions(posterior: Posterior, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    n = len(X)
    mean, cov = (to_numpy(part) for part in posterior.predict(X, return_cov=True))
    again, std = (to_numpy(part) for part in posterior.predict(X, return_std=True))
    assert (mean.shape, cov.shape, std.shape) == (
        (n,),
        (n, n),
        (n,),
    ), "predictions: expected (n,), (n, n) and (n,)"
    assert all(np.isfinite(part).all() for part in (mean, cov, std)), (
        "predictions: expected finite numbers"
    )
    for other in (again, to_numpy(posterior.predict(X))):
        _agree("the mean does not depend on what else is asked for", other, mean, TIGHT)
    _agree("standard deviations are those of the covariance", std**2, np.diagonal(cov), TIGHT)
    alone = np.concatenate([to_numpy(posterior.predict(X[i : i + 1])) for i in range(n)])
    _agree("predictions do not depend on the other rows", alone, mean, TIGHT)
    _agree("symmetry of the covariance", cov, cov.T, TIGHT)
    lowest, highest = np.linalg.eigvalsh(cov)[[0, -1]]
    assert lowest >= -TIGHT * highest, (
        f"the covariance of the predictions has the eigenvalue {lowest:.2g}"
    )
    return mean, cov


def _check_posterior_attributions(
    posterior: Posterior, x: np.ndarray, b: np.ndarray, mean: np.ndarray, cov: np.ndarray
) -> None:
    """Check attributions of x against the predictions ``mean`` and ``cov`` at x and, last, at b."""
    n, d = x.shape
    op = IntegratedGradients(b)
    result = posterior.apply(op, x)
    assert result.var is not None, "apply: expected variances"
    assert result.cov is not None, "apply: expected covariances"
    values, var, C, error = (
        to_numpy(part) for part in (result.mean, result.var, result.cov, result.error)
    )
    assert values.shape == var.shape == (n, d), "attributions: expected (n, d)"
    assert C.shape == (n, d, d), "attributions: expected a covariance (n, d, d)"
    assert error.shape == (n,), "attributions: expected one error per row"
    sizes = float(np.abs(mean).max()), float(np.diagonal(cov).max())
    _check_laws_of_one_row(values, var, C, mean, cov)
    _check_less_uncertainty(posterior, op, x, values, var, sizes)
    reverse = posterior.apply(IntegratedGradients(x), np.broadcast_to(b, x.shape).copy())
    _agree_in_both("path reversal of the {}", reverse, (-values, C), sizes)
    alone = posterior.apply(op, x[1:2])
    _agree_in_both("the {} does not depend on the other rows", alone, (values[1:2], C[1:2]), sizes)
    _check_between_rows(to_numpy(posterior.joint(op, x)), C, cov)


def _agree_in_both(
    law: str, got: Any, expected: tuple[np.ndarray, np.ndarray], sizes: tuple[float, float]
) -> None:
    """Check the mean and the covariance of attributions, whose name stands at {} in ``law``."""
    for name, one, two, size in zip(
        ("mean", "covariance"), (got.mean, got.cov), expected, sizes, strict=True
    ):
        _agree(law.format(name), to_numpy(one), two, TIGHT, size)


def _check_laws_of_one_row(
    values: np.ndarray, var: np.ndarray, C: np.ndarray, mean: np.ndarray, cov: np.ndarray
) -> None:
    """Check completeness, variances, definiteness, and that feature 0 of row 0 gets nothing."""
    size, spread = float(np.abs(mean).max()), float(np.diagonal(cov).max())
    gain = mean[:-1] - mean[-1]
    _agree("completeness of the mean", values.sum(axis=1), gain, TIGHT, size)
    variance = np.diagonal(cov)[:-1] - 2.0 * cov[:-1, -1] + cov[-1, -1]
    _agree("completeness of the covariance", C.sum(axis=(1, 2)), variance, TIGHT, spread)
    diagonal = np.diagonal(C, axis1=1, axis2=2)
    _agree("variances are those of the covariance", var, diagonal, TIGHT, spread)
    lowest = np.linalg.eigvalsh(C).min()
    assert lowest >= -TIGHT * spread, (
        f"attributions: their covariance has the eigenvalue {lowest:.2g}"
    )
    still = np.concatenate([values[0, :1], C[0, 0], C[0, :, 0]])
    assert not still.any(), f"dummy: a feature that does not move gets {np.abs(still).max():.2g}"


def _check_less_uncertainty(
    posterior: Posterior,
    op: IntegratedGradients,
    x: np.ndarray,
    values: np.ndarray,
    var: np.ndarray,
    sizes: tuple[float, float],
) -> None:
    """Check that means and variances are the same for smaller requests."""
    for uncertainty in ("std", "none"):
        other = posterior.apply(op, x, uncertainty=uncertainty)
        assert other.cov is None, f'uncertainty="{uncertainty}": expected no covariance'
        law = f'means with uncertainty="{uncertainty}"'
        _agree(law, to_numpy(other.mean), values, TIGHT, sizes[0])
        if uncertainty == "std":
            _agree('variances with uncertainty="std"', to_numpy(other.var), var, TIGHT, sizes[1])


def _check_between_rows(joint: np.ndarray, C: np.ndarray, cov: np.ndarray) -> None:
    """Check the joint covariance of all rows against each row's and the predictions'."""
    n, d = C.shape[:2]
    spread = float(np.diagonal(cov).max())
    _agree("between a row and itself", joint[range(n), :, range(n)], C, TIGHT, spread)
    across = cov[:-1, :-1] - cov[:-1, -1:] - cov[-1:, :-1] + cov[-1, -1]
    law = "completeness of the covariance between rows"
    _agree(law, joint.sum(axis=(1, 3)), across, TIGHT, spread)
    lowest = np.linalg.eigvalsh(joint.reshape(n * d, n * d)).min()
    assert lowest >= -TIGHT * spread * n * d, (
        f"attributions: their joint covariance has the eigenvalue {lowest:.2g}"
    )


def _check_several_baselines(posterior: Posterior, x: np.ndarray, rows: np.ndarray) -> None:
    weights = np.array([0.5, 0.3, 0.2])
    points = rows[[0, 4, 2]]
    averaged = posterior.apply(IntegratedGradients(Baselines(points, weights)), x)
    single = [
        to_numpy(posterior.apply(IntegratedGradients(point), x, uncertainty="none").mean)
        for point in points
    ]
    mean, cov = (
        to_numpy(part) for part in posterior.predict(np.vstack([x, points]), return_cov=True)
    )
    size, spread = float(np.abs(mean).max()), float(np.diagonal(cov).max())
    _agree(
        "means over weighted baselines",
        to_numpy(averaged.mean),
        np.tensordot(weights, single, axes=1),
        TIGHT,
        size,
    )
    change = np.hstack([np.eye(len(x)), np.broadcast_to(-weights, (len(x), 3))])
    variance = np.einsum("ni,ij,nj->n", change, cov, change)
    _agree(
        "completeness over weighted baselines",
        to_numpy(averaged.cov).sum(axis=(1, 2)),
        variance,
        TIGHT,
        spread,
    )


def _check_integrals(posterior: Posterior, x: np.ndarray, b: np.ndarray) -> None:
    """Attributions are integrals of the posterior's gradients, which are slopes of predictions."""
    n, d = x.shape
    by_integral = []
    for panels in (8, 12):
        nodes, weights = gauss_legendre(20, panels)
        points = (b + nodes[:, None, None] * (x - b)).reshape(-1, d)
        gradients = to_numpy(posterior.apply(Gradient(), points, uncertainty="none").mean).reshape(
            len(nodes), n, d
        )
        by_integral.append(np.tensordot(weights, gradients, axes=1) * (x - b))
    result = posterior.apply(IntegratedGradients(b), x, uncertainty="none")
    values, error = to_numpy(result.mean), to_numpy(result.error)
    size = float(np.abs(to_numpy(posterior.predict(points))).max())
    _agree("attributions against the integral of gradients", values, by_integral[0], 1e-8, size)
    # The integral is as accurate as a finer one shows.
    off, doubt = (
        np.abs(values - by_integral[1]).max(axis=1),
        np.abs(by_integral[1] - by_integral[0]).max(axis=1),
    )
    excess = off - error - 4.0 * doubt - 1e-12 * size
    assert (excess <= 0).all(), (
        f"error: {error[excess.argmax()]:.2g} is reported for means that are off by"
        f" {off[excess.argmax()]:.2g}"
    )
    spread = np.abs(x - b).max(axis=0) + 1e-300
    for i in range(d):
        move = STEP * spread[i] * np.eye(d)[i]
        inner = 0.5 * (x + b)
        up, down = (to_numpy(posterior.predict(inner + sign * move)) for sign in (1, -1))
        slope = to_numpy(posterior.apply(Gradient(), inner, uncertainty="none").mean)[:, i]
        _agree(
            f"∂f/∂x{i} against finite differences",
            slope * spread[i],
            (up - down) / (2 * STEP),
            LOOSE,
            size,
        )
    draws = posterior.apply(Gradient(), points[: n * 2])
    assert np.isfinite(to_numpy(draws.cov)).all(), "gradients: expected a finite covariance"


def _check_brute_force(posterior: Posterior, x: np.ndarray, b: np.ndarray) -> None:
    """Attributions are sums of differences of f along the path, which the posterior predicts."""
    d = len(x)
    nodes, weights = gauss_legendre(8, max(1, min(8, 80 // d)))
    step = 1e-3 * np.abs(x - b).max()
    offsets = step * np.stack([np.eye(d), -np.eye(d)])  # (2, d, d)
    points = (b + nodes[:, None] * (x - b))[:, None, None, :] + offsets
    mean, cov = (
        to_numpy(part) for part in posterior.predict(points.reshape(-1, d), return_cov=True)
    )
    sums = (
        weights[:, None, None, None] * np.array([0.5, -0.5])[:, None, None] / step * np.diag(x - b)
    )  # (T, 2, d, d)
    sums = sums.reshape(len(points) * 2 * d, d).T
    result = posterior.apply(IntegratedGradients(b), x[None])
    size, spread = float(np.abs(mean).max()), float(np.diagonal(cov).max())
    _agree(
        "attributions against differences of predictions",
        to_numpy(result.mean)[0],
        sums @ mean,
        BRUTE,
        size,
    )
    _agree(
        "their covariance against that of differences",
        to_numpy(result.cov)[0],
        sums @ cov @ sums.T,
        BRUTE,
        spread,
    )


def _check_draws(
    posterior: Posterior, x: np.ndarray, b: np.ndarray, generator: np.random.Generator
) -> None:
    count, op = 4000, IntegratedGradients(b)
    draws = posterior.sample(op, x, count, random_state=generator)
    assert draws.shape == (
        count,
        *x.shape,
    ), f"draws: expected {(count, *x.shape)}, got {draws.shape}"
    flat, mean = (
        draws.reshape(count, -1),
        to_numpy(posterior.apply(op, x, uncertainty="none").mean).ravel(),
    )
    C = to_numpy(posterior.joint(op, x)).reshape(mean.size, mean.size)
    variance = np.diagonal(C)
    limit = 6.0 * np.sqrt(variance / count) + TIGHT * float(np.abs(mean).max())
    assert (np.abs(flat.mean(axis=0) - mean) <= limit).all(), (
        "draws: their mean is not that of the attributions"
    )
    limit = 12.0 * np.sqrt((C**2 + np.outer(variance, variance)) / count) + TIGHT * float(
        variance.max()
    )
    assert (np.abs(np.cov(flat.T) - C) <= limit).all(), (
        "draws: their covariance is not that of the attributions"
    )


def _check_rows_covariance(posterior: Posterior, x: np.ndarray, rows: np.ndarray) -> None:
    """Covariances of single features and of sums agree with the joint covariance.

    Also with a baseline for each row.
    """
    d = x.shape[1]
    G = np.stack([np.ones(d), np.arange(d) % 2.0], axis=1)
    for op in (IntegratedGradients(rows[0]), IntegratedGradients(rows[: len(x)])):
        joint = to_numpy(posterior.joint(op, x))
        alone, sums = (to_numpy(posterior.rows_covariance(op, x, gather)) for gather in (None, G))
        size = float(np.abs(joint).max())
        _agree(
            "covariance between rows of each feature",
            alone,
            np.einsum("nimi->inm", joint),
            TIGHT,
            size,
        )
        _agree(
            "covariance between rows of sums",
            sums,
            np.einsum("njmk,ji,ki->inm", joint, G, G),
            TIGHT,
            size * d,
        )
