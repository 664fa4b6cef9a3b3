"""Coregionalised outputs whose targets are not all known in every row: each row is of one task.

    Cov[f_o(x), f_p(x')] = B_op k(x, x'),      yₙ = f_tₙ(xₙ) + noiseₙ
    L = chol(B_tₙtₘ k(xₙ, xₘ) + diag noise)

The posterior of one task is the posterior of a GP with kernel B_oo k whose covariances with the
data are multiplied by B_otₙ / B_oo.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gpattr._core.array import (
    Array,
    LinAlgError,
    cholesky,
    namespace,
    outer_products,
    solve_cholesky,
    solve_lower_rows,
)
from gpattr._core.memory import blocks, check_memory
from gpattr._core.validation import as_matrix, as_vector, check_names, column_names, read_only
from gpattr.closed_forms.resolution import formulas_for
from gpattr.closed_forms.verbs import weighted_cross, weighted_prior_cov
from gpattr.exceptions import InvalidInputError, NotPositiveDefiniteError
from gpattr.kernels import Kernel
from gpattr.means import Mean
from gpattr.posteriors.combination import known_mean
from gpattr.posteriors.exact import check_training_memory
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.posteriors.given import check_noise, matrix, root_of
from gpattr.posteriors.multi_output import MultiOutputBound, MultiOutputPosterior


@dataclass(frozen=True, eq=False, repr=False)
class TaskPosterior(FunctionSpacePosterior):
    """The posterior of one task; all rows, of whatever task, are its training inputs."""

    @property
    def training_inputs(self) -> Array:
        return self.inputs

    def __repr__(self) -> str:
        m, d = self.inputs.shape
        return f"TaskPosterior({m} rows × {d} features, kernel={self.kernel!r})"


class MultiTaskPosterior(MultiOutputPosterior):
    """The posterior of several tasks given rows X (m, d), each with the target y (m,) of one task.

    ``tasks`` (m,) are the tasks of the rows, 0 … P − 1. ``covariance`` B (P, P) is the covariance
    between tasks; ``noise`` is a variance, one number or one per row; ``means`` are the prior
    means, one per task. Where every row has all targets, `MultiOutputPosterior.coregionalised` is
    quicker.

    Examples
    --------
    >>> import numpy as np
    >>> from gpattr.kernels import SquaredExponential
    >>> from gpattr.posteriors import MultiTaskPosterior
    >>> X, tasks = np.array([[0.0], [1.0], [1.0]]), [0, 0, 1]
    >>> between = [[1.0, 0.9], [0.9, 1.0]]
    >>> posterior = MultiTaskPosterior(
    ...     SquaredExponential(), X, [0.0, 1.0, 1.0], tasks, covariance=between, noise=0.01
    ... )
    >>> posterior.predict([[0.0]]).shape  # both tasks, though the second was measured at 1 only
    (1, 2)
    """

    kernel: Kernel
    inputs: Array
    covariance: Array
    task_of_row: Array
    factor: Array

    def __init__(
        self,
        kernel: Kernel,
        X: ArrayLike,
        y: ArrayLike,
        tasks: ArrayLike,
        *,
        covariance: ArrayLike,
        noise: ArrayLike,
        means: Sequence[Mean] | None = None,
        output_names: Sequence[str] | None = None,
    ) -> None:
        if not isinstance(kernel, Kernel):
            raise InvalidInputError(
                f"kernel: expected a gpattr kernel, got {type(kernel).__name__}"
            )
        Z, names = read_only(as_matrix("X", X)), column_names(X)
        xp, m = namespace(Z), len(Z)
        kernel.check_features(Z.shape[1])
        y = as_vector("y", y, length=m, unit="targets (one per row of X)", like=Z)
        B, at = _checked_tasks(covariance, tasks, m)
        P = len(B)
        if means is not None and (not isinstance(means, Sequence) or len(means) != P):
            raise InvalidInputError(f"means: expected {P} gpattr means, one per task")
        prior = [known_mean(None if means is None else means[p]) for p in range(P)]
        default = tuple(f"y{p}" for p in range(P))
        labels = check_names("output_names", default if output_names is None else output_names, P)
        L = _factor(kernel, Z, xp.asarray(B[np.ix_(at, at)]), check_noise(noise, Z))
        own_task = xp.asarray(np.eye(P)[:, at])
        known = (own_task * xp.stack([mean(Z) for mean in prior])).sum(axis=0)
        alpha = solve_cholesky(L, y - known)
        outputs = {}
        for p, label in enumerate(labels):
            share, own = xp.asarray(B[p, at] / B[p, p]), float(B[p, p]) * kernel
            options: dict[str, Any] = {"mean": prior[p], "feature_names": names}
            outputs[label] = TaskPosterior(own, Z, alpha * share, L, None, share, **options)
        super().__init__(outputs)
        for name, value in {
            "kernel": kernel,
            "inputs": Z,
            "covariance": read_only(B),
            "task_of_row": at,
            "factor": L,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def independent(self) -> bool:
        return False

    def across_at(self, bound: MultiOutputBound, X: Array) -> Array:
        evaluation, operator = bound.evaluation, bound.operator
        n, q, P, Z = len(X), operator.size(X.shape[1]), len(self), self.inputs
        check_memory("The covariance across outputs", (n, q, P, q, P), "use fewer rows")
        formulas = formulas_for(operator, self.kernel, evaluation.method, evaluation.n_steps)
        xp = namespace(X)
        covariance = xp.asarray(self.covariance)
        shares = xp.asarray(self.covariance[:, self.task_of_row])
        result = xp.empty((n, q, P, q, P))
        for rows in blocks(n, 16.0 * q * P * len(Z), X):
            part = operator.rows(rows)
            cross = weighted_cross(formulas, part, X[rows], Z).value  # (r, q, m)
            V = xp.stack([cross * share for share in shares], axis=2)  # (r, q, P, m)
            V = solve_lower_rows(self.factor, V.reshape(-1, len(Z))).reshape(V.shape)
            own = weighted_prior_cov(formulas, part, X[rows]).value
            prior = xp.einsum("nij,op->niojp", own, covariance)
            result[rows] = prior - outer_products(V.reshape(len(V), q * P, -1)).reshape(prior.shape)
        return result


def _checked_tasks(covariance: Any, tasks: Any, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the covariance between tasks, (P, P), and the task of each row, (m,)."""
    P = len(np.atleast_1d(covariance))
    B = np.asarray(matrix("covariance", covariance, P, P), dtype=np.float64)
    root_of("covariance", B)
    at = as_vector("tasks", tasks, length=m, unit="tasks (one per row of X)")
    if not np.isin(at, np.arange(P)).all():
        raise InvalidInputError(
            f"tasks: expected numbers from 0 to {P - 1}, one task for each row of the covariance"
        )
    if not (B.diagonal() > 0).all():
        raise InvalidInputError("covariance: expected variances larger than 0 for every task")
    return B, at.astype(int)


def _factor(kernel: Kernel, Z: Array, shares: Array, noise: Array) -> Array:
    """Return chol(B_tₙtₘ k(xₙ, xₘ) + diag noise), (m, m)."""
    check_training_memory(Z)
    A, i = shares * kernel(Z, Z), namespace(Z).arange(len(Z))
    A[i, i] += noise
    try:
        return cholesky(A)
    except LinAlgError:
        raise NotPositiveDefiniteError(
            "noise: the covariance of the training targets is singular; increase the noise variance"
        ) from None
