"""Conformance suites that anyone can run on parts of their own."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr import closed_forms
from gpattr._array import to_numpy
from gpattr._validation import as_matrix
from gpattr.closed_forms.derivatives import Jet, differentiate, require_derivatives
from gpattr.exceptions import InvalidInputError
from gpattr.kernels import Kernel, SquaredExponential
from gpattr.operators import IntegratedGradients, Paths

STEP = 6e-6  # ε^(1/3): where truncation and rounding of a central difference balance
LOOSE, TIGHT = 1e-5, 1e-9  # relative to the size of what is compared: finite differences, and everything else


def check_kernel(kernel: Kernel, X: Any = None, *, random_state: int = 0) -> None:
    """Check that a kernel can be trusted; raise ``AssertionError`` that names the law it breaks.

    Values are symmetric, agree with ``diagonal`` and are positive semi-definite; derivatives are those of the values, alone and
    inside a nested sum and product; attributions are complete, leave features that do not move at zero, and are the same by
    closed form and by quadrature. ``X`` (n, d) are rows in the range where the kernel is used; standard normal ones by default.
    A kernel without derivatives raises `UnsupportedModelError`.
    """
    if not isinstance(kernel, Kernel):
        raise InvalidInputError(f"kernel: expected a gpattr kernel, got {type(kernel).__name__}")
    rng = np.random.default_rng(random_state)
    rows = rng.normal(size=(12, _features(kernel))) if X is None else to_numpy(as_matrix("X", X))
    if len(rows) < 4:
        raise InvalidInputError(f"X: expected at least 4 rows, got {len(rows)}")
    kernel.check_features(rows.shape[1])
    rows = rows[rng.permutation(len(rows))[:12]]
    _check_values(kernel, rows)
    require_derivatives(kernel)
    spread = float(rows.std()) or 1.0
    other = SquaredExponential(lengthscale=2.0 * spread)
    for name, expression in (("", kernel), (" inside a nested sum and product", (kernel * other + 0.5 * kernel) * (other + 1.0))):
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
    assert worst <= tolerance * scale + 1e-300, f"{law}: differs by {worst:.2g}, where {tolerance * scale:.2g} is allowed"


def _check_values(kernel: Kernel, X: np.ndarray) -> None:
    n = len(X)
    K, half = kernel(X, X), kernel(X, X[: n // 2])
    assert (K.shape, half.shape) == ((n, n), (n, n // 2)), f"values: expected (n, m), got {K.shape} and {half.shape}"
    assert np.isfinite(K).all(), "values: expected finite numbers"
    _agree("symmetry k(x, x') = k(x', x)", K, K.T, TIGHT)
    _agree("values of some rows are those of all", half[n // 2 :], K[n // 2 :, : n // 2], TIGHT)
    assert kernel.diagonal(X).shape == (n,), f"diagonal: expected ({n},), got {kernel.diagonal(X).shape}"
    _agree("diagonal = k(x, x)", kernel.diagonal(X), np.diagonal(K), TIGHT)
    lowest, highest = np.linalg.eigvalsh(K)[[0, -1]]
    assert lowest >= -1e-10 * highest, f"positive definiteness: the kernel matrix has the eigenvalue {lowest:.2g}"
    assert kernel.span(X).shape == (n,), f"span: expected ({n},), got {np.shape(kernel.span(X))}"


def _check_derivatives(kernel: Kernel, X: np.ndarray, step: float, where: str) -> None:
    x, y = X, np.roll(X, 1, axis=0)
    jet = differentiate(kernel, x, y, True)
    assert isinstance(jet, Jet), f"derivatives: expected a Jet, got {type(jet).__name__}"
    _agree(f"value of the derivatives{where}", jet.value, np.diagonal(kernel(x, y)), TIGHT)
    all_pairs = differentiate(kernel, x[:, None, :], y)
    _agree(f"first derivatives of all pairs{where}", all_pairs.left[range(len(x)), range(len(x))], jet.left, TIGHT)
    size = float(np.abs(jet.value).max())
    same = differentiate(kernel, x, x, True)
    finite = all(np.isfinite(part).all() for both in (jet, same) for part in both)
    assert finite, f"derivatives{where}: expected finite numbers, at x = x' too"
    for i in range(x.shape[1]):
        move = step * np.eye(x.shape[1])[i]
        up, down = np.diagonal(kernel(x + move, y)), np.diagonal(kernel(x - move, y))
        _agree(f"∂k/∂x{i} against finite differences{where}", jet.left[:, i], (up - down) / (2 * step), LOOSE, size)
        up, down = np.diagonal(kernel(x, y + move)), np.diagonal(kernel(x, y - move))
        _agree(f"∂k/∂x'{i} against finite differences{where}", jet.right[:, i], (up - down) / (2 * step), LOOSE, size)
        up, down = (differentiate(kernel, x, y + sign * move).left for sign in (1, -1))
        _agree(f"∂²k/∂x∂x'{i} against finite differences{where}", jet.mixed[:, :, i], (up - down) / (2 * step), LOOSE, size)


def _check_attributions(kernel: Kernel, X: np.ndarray) -> None:
    b, x, Z = X[0], X[1:4].copy(), X
    x[0, 0] = b[0]
    op, size = IntegratedGradients(b), float(np.abs(kernel(X, X)).max())
    cross, auto, between = (
        {method: verb(op, kernel, x, *more, method=method) for method in ("auto", "quadrature")}
        for verb, more in ((closed_forms.cross, (Z,)), (closed_forms.auto, ()), (closed_forms.between, ()))
    )
    for name, both in (("cross", cross), ("auto", auto), ("between", between)):
        _agree(f"closed form against quadrature, {name}", both["auto"], both["quadrature"], TIGHT, size)
    gain = kernel(x, Z) - kernel(b[None], Z)
    _agree("completeness of the cross covariance", cross["auto"].sum(axis=1), gain, TIGHT, size)
    variance = kernel.diagonal(x) - 2 * kernel(x, b[None])[:, 0] + kernel.diagonal(b[None])
    _agree("completeness of the prior covariance", auto["auto"].sum(axis=(1, 2)), variance, TIGHT, size)
    across = kernel(x, x) - kernel(x, b[None]) - kernel(b[None], x) + kernel(b[None], b[None])
    _agree("completeness of the covariance between rows", between["auto"].sum(axis=(1, 3)), across, TIGHT, size)
    same = between["auto"][range(len(x)), :, range(len(x))]
    _agree("between a row and itself = auto", same, auto["auto"], TIGHT, size)
    still = np.concatenate([cross["auto"][0, 0], auto["auto"][0, 0], auto["auto"][0, :, 0]])
    assert not still.any(), f"dummy: a feature that does not move gets {np.abs(still).max():.2g}"
    joint = between["auto"].reshape(len(x) * len(b), -1)
    lowest, highest = np.linalg.eigvalsh(0.5 * (joint + joint.T))[[0, -1]]
    assert lowest >= -1e-9 * max(highest, size), f"attributions: their prior covariance has the eigenvalue {lowest:.2g}"
    reverse = closed_forms.rule_for(IntegratedGradients, kernel).auto(Paths(x, np.broadcast_to(b, x.shape)))
    _agree("path reversal", reverse, auto["auto"], TIGHT, size)
