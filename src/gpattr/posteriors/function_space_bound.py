"""Operators bound to function-space posteriors.

With C = 𝒜k(·, Z), the covariance of 𝒜f with the function at Z, and V = C diag(w) L⁻ᵀ:

    E[𝒜f] = 𝒜m + Cα,        Cov[𝒜f] = 𝒜k𝒜ᵀ − V(I − RRᵀ)Vᵀ + R C_β Rᵀ

where the last term comes from uncertain coefficients of the mean.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpattr._core.array import EPS, Array, namespace, on_gpu, outer_products, product
from gpattr._core.memory import blocks, check_memory
from gpattr.closed_forms.resolution import basis_formulas_for, formulas_for, mean_formulas_for
from gpattr.closed_forms.table import BasisFormulas, Formulas, MeanFormulas
from gpattr.closed_forms.verbs import (
    weighted_between,
    weighted_contract,
    weighted_cross,
    weighted_error,
    weighted_images,
    weighted_mean,
    weighted_prior_cov,
)
from gpattr.distributions import Gaussian
from gpattr.exceptions import ToleranceError
from gpattr.operators import Operator
from gpattr.posteriors.bound import (
    Attributions,
    Bound,
    Evaluation,
    check_covariance_memory,
    check_joint_memory,
    covariance,
    gathering,
    output_by_output,
    rows_covariance_of,
    values_covariance_of,
)
from gpattr.posteriors.spectrum import PILOTS, Spectrum, leading

if TYPE_CHECKING:
    from gpattr.posteriors.function_space import FunctionSpacePosterior


@dataclass(frozen=True, eq=False)
class FunctionSpaceBound(Bound):
    """An operator bound to a `FunctionSpacePosterior`: its formulas for kernel, mean and trend."""

    posterior: FunctionSpacePosterior
    operator: Operator
    evaluation: Evaluation
    formulas: Formulas
    mean_formulas: MeanFormulas | None
    trend_formulas: BasisFormulas | None

    @classmethod
    def of(
        cls, posterior: FunctionSpacePosterior, operator: Operator, evaluation: Evaluation
    ) -> FunctionSpaceBound:
        """Return the operator bound to this posterior."""
        method, trend = evaluation.method, posterior.trend
        formulas = formulas_for(operator, posterior.kernel, method, evaluation.n_steps)
        mean = mean_formulas_for(operator, posterior.mean, method)
        basis = None if trend is None else basis_formulas_for(operator, trend.basis)
        return cls(posterior, operator, evaluation, formulas, mean, basis)

    @property
    def pair_cost(self) -> float:
        return self.formulas.pair_cost

    def rows(self, rows: Any) -> FunctionSpaceBound:
        return replace(self, operator=self.operator.rows(rows))

    @cached_property
    def method(self) -> str:
        """The method of the outputs, in words."""
        of_mean = frozenset() if self.mean_formulas is None else self.mean_formulas.methods
        return " + ".join(sorted(self.formulas.methods | of_mean))

    @property
    def _bounded(self) -> bool:
        # A rule with a number of steps is as good as it is.
        return "quadrature" in self.method and self.evaluation.n_steps is None

    def apply(self, X: Array) -> Attributions:
        self.posterior.check_range(X)
        xp, n, q = namespace(X), len(X), self.operator.size(X.shape[1])
        uncertainty = self.evaluation.uncertainty
        if uncertainty == "cov":
            check_covariance_memory(n, q)
        mean, error = weighted_mean(self.mean_formulas, self.operator, X)
        # Where the error is known beforehand, means come with the covariance from the same cross.
        contracted = uncertainty == "none" or self.formulas.bound is None
        if contracted:
            mean, error = self._contracted(X, mean, error)
        else:
            weights = self.posterior.alpha[:, None]
            error = error + weighted_error(
                self.formulas, self.operator, X, self.posterior.inputs, weights
            )
        var = cov = cov_error = None
        method = self.method
        if uncertainty != "none":
            spectrum = self._spectrum(X)
            solved = 0
            var, cov_error = xp.empty((n, q)), xp.empty(n)
            cov = xp.empty((n, q, q)) if uncertainty == "cov" else None
            terms = self._n_terms
            # Blocks that stay in the cache of a CPU; a GPU wants as much at a time as fits.
            copies = 2.0 if on_gpu(X) and terms == 1 else 4.0
            for rows in blocks(n, 8.0 * copies * q * (len(self.posterior.inputs) + terms + q), X):
                whole = rows == slice(0, n)
                operator = self.operator if whole else self.operator.rows(rows)
                part = self._covariances(operator, X[rows], rows.start, spectrum)
                solved += part.solved
                if not contracted and part.mean is not None:
                    mean[rows] += part.mean
                error[rows] += part.mean_error
                var[rows], cov_error[rows] = part.var, part.error
                if cov is not None:
                    cov[rows] = part.cov
            method += self._in_words(spectrum, solved, n)
        mean = mean + 0.0  # −0.0 becomes 0.0
        error = error + EPS * xp.max(xp.abs(mean), axis=1)
        if self._bounded:
            self._require_accuracy(X, mean, error)
        return Attributions(Gaussian(mean, var, cov), error, method, cov_error)

    @cached_property
    def _n_terms(self) -> int:
        """The number of terms of the operator, the same for every row."""
        return len(self.operator.rows(slice(1)).terms(self.posterior.inputs[:1]))

    def require_accuracy(
        self, X: Array, mean: Array, error: Array, integrated: Array, size: Array
    ) -> None:
        """Raise `ToleranceError` if quadrature leaves too large an error of means or covariances.

        ``error`` (n,) is the mean's error, ``integrated`` (n,) the error of covariances, whose
        prior variances are at most ``size`` (n,).
        """
        if self._bounded:
            self._require_accuracy(X, mean, error)
            self._require_covariance_accuracy(X, 0, integrated, size)

    def _spectrum(self, X: Array) -> Spectrum | None:
        """Return the eigenvectors that covariances need; None where these are solved for."""
        tolerance = self.evaluation.covariance_tolerance
        if tolerance is None or not len(X):
            return None
        rows = slice(0, len(X), max(1, len(X) // PILOTS))
        pilots, operator = X[rows], self.operator.rows(rows)
        return leading(
            self.posterior,
            weighted_cross(self.formulas, operator, pilots, self.posterior.inputs).value,
            weighted_prior_cov(self.formulas, operator, pilots).value,
            tolerance,
        )

    def _in_words(self, spectrum: Spectrum | None, solved: int, n: int) -> str:
        """Return how covariances were computed, where a tolerance for them was given."""
        if self.evaluation.covariance_tolerance is None:
            return ""
        if spectrum is None:
            return ", covariances solved for"
        rest = f", {solved:,} of {n:,} rows solved for" if solved else ""
        return (
            f", covariances by {len(spectrum)} of {len(self.posterior.inputs):,} eigenvectors{rest}"
        )

    def _contracted(self, X: Array, mean: Array, error: Array) -> tuple[Array, Array]:
        """Return mean and error with Cα added, without forming C."""
        posterior, none = self.posterior, self.evaluation.uncertainty == "none"
        # Where V is not formed, and prior variances take long.
        dear = self.formulas.bound is None or self.pair_cost > Formulas.pair_cost
        sketched = none and dear
        sensitivity, alpha = posterior.sensitivity, posterior.alpha
        w = sensitivity.beside(alpha) if sketched else alpha[:, None]
        value, bound = weighted_contract(self.formulas, self.operator, X, posterior.inputs, w)
        mean, error = mean + value[:, :, 0], error + bound
        if sketched:
            lengths = sensitivity.lengths_from(value[:, :, 1:])
            error = error + sensitivity.rounding_of_mean(lengths)
        elif none:
            error = error + sensitivity.rounding_of_mean(sensitivity.longest(self._prior_std(X)))
        if self._bounded:
            self._require_accuracy(X, mean, error)
        return mean, error

    def _covariances(
        self, operator: Operator, X: Array, first: int, spectrum: Spectrum | None
    ) -> _Block:
        """Return the covariances of some rows, of which the first is called so in messages."""
        posterior, xp = self.posterior, namespace(X)
        cross, cross_error = weighted_cross(self.formulas, operator, X, posterior.inputs)
        # `solve` works in place of the cross term.
        mean = None if self.formulas.bound is None else product(cross, posterior.alpha)
        block, prior_error = weighted_prior_cov(self.formulas, operator, X)
        size = xp.max(xp.diagonal(block, axis1=1, axis2=2), axis=1)
        trend_error = 0.0
        if posterior.trend is not None:
            R = self._trend(operator, X, cross)
            block = block + outer_products(R)
            longest = xp.sqrt(xp.max((R * R).sum(axis=2), axis=1))
            trend_error = 2.0 * posterior.trend.length * longest
        explained, lengths, left, solved = self._explained(cross, block, spectrum)
        block, sensitivity = covariance(block - explained), posterior.sensitivity
        integrated = prior_error + cross_error * (2.0 * sensitivity.scale * lengths + trend_error)
        if self._bounded:
            self._require_covariance_accuracy(X, first, integrated, size)
        return _Block(
            mean,
            sensitivity.rounding_of_mean(lengths),
            xp.diagonal(block, axis1=1, axis2=2),
            block,
            integrated + sensitivity.rounding(lengths, size) + left,
            solved,
        )

    def _explained(
        self, cross: Array, prior: Array, spectrum: Spectrum | None
    ) -> tuple[Array, Array, Array | float, int]:
        """Return V(I − RRᵀ)Vᵀ (r, q, q), the lengths of W, and the error of eigenvectors, (r,).

        Rows for which these do not suffice are solved for; their number comes last.
        """
        posterior = self.posterior
        if spectrum is None:
            V = posterior.solve(cross.reshape(-1, cross.shape[2])).reshape(cross.shape)
            return posterior.explained(V), posterior.sensitivity.lengths(V), 0.0, len(cross)
        xp, tolerance = namespace(cross), self.evaluation.covariance_tolerance
        lengths = posterior.sensitivity.sketched_lengths(cross)
        value, error = spectrum.explained(cross)
        var = xp.max(xp.diagonal(prior - value, axis1=1, axis2=2), axis=1)
        over = xp.nonzero(~(error <= tolerance * var))[0]
        if len(over):
            V = posterior.solve(cross[over].reshape(-1, cross.shape[2]))
            V = V.reshape(len(over), *cross.shape[1:])
            value[over], error[over] = posterior.explained(V), 0.0
            lengths[over] = posterior.sensitivity.lengths(V)
        return value, lengths, error, len(over)

    def _trend(self, operator: Operator, X: Array, cross: Array) -> Array:
        """Return the residual R of the uncertain mean's basis, (r, q, p)."""
        trend, formulas = self.posterior.trend, self.trend_formulas
        assert trend is not None
        assert formulas is not None
        return trend.residual(weighted_images(formulas, operator, X, len(trend.basis)), cross)

    def _prior_std(self, X: Array) -> Array:
        """Return an upper bound of the largest prior standard deviation of each row, (n,).

        That of an average is no larger than the average of standard deviations.
        """
        xp, std = namespace(X), namespace(X).zeros(len(X))
        for rows in blocks(len(X), 32.0 * self.operator.size(X.shape[1]) ** 2, X):
            for weight, sites in self.operator.rows(rows).terms(X[rows]):
                variances = xp.diagonal(self.formulas.prior_cov(sites).value, axis1=1, axis2=2)
                std[rows] += abs(weight) * xp.sqrt(xp.max(variances, axis=1))
        return std

    def _require_covariance_accuracy(self, X: Array, first: int, error: Array, size: Array) -> None:
        """Raise `ToleranceError` if quadrature leaves too large an error of a covariance, (r,)."""
        xp = namespace(X)
        allowed = self.evaluation.tolerance * xp.maximum(size, 1e-300)
        excess = error - xp.maximum(allowed, 1e-9 * self.posterior.kernel.diagonal(X))
        if not (excess <= 0).all():
            row = int(excess.argmax())
            raise ToleranceError(
                f"tolerance: covariances of the attributions of row {first + row} are accurate only"
                f" to {float(error[row]):.1e}, where {float(allowed[row]):.1e} is asked for; the"
                " kernel changes too fast along the path, or the model is too ill-conditioned. A"
                ' larger tolerance= accepts it; uncertainty="none" explains without them'
            )

    def _require_cross_accuracy(self, X: Array, points: Array, first: int, error: Array) -> None:
        """Raise `ToleranceError` if quadrature leaves too large an error of a covariance, (r,)."""
        xp, kernel = namespace(X), self.posterior.kernel
        allowed = xp.sqrt(kernel.diagonal(X) * kernel.diagonal(points).max())
        allowed = self.evaluation.tolerance * allowed
        if not (error <= allowed).all():
            row = int((error - allowed).argmax())
            raise ToleranceError(
                f"tolerance: covariances between the attributions of row {first + row} and values"
                f" of the function are accurate only to {float(error[row]):.1e}, where"
                f" {float(allowed[row]):.1e} is asked for; a larger tolerance= accepts it"
            )

    def _require_accuracy(self, X: Array, mean: Array, error: Array) -> None:
        """Raise `ToleranceError` if an error exceeds its share of the size of the function.

        The size is the larger of the attributions and the prior's standard deviation.
        """
        xp, tolerance = namespace(X), self.evaluation.tolerance
        prior = xp.sqrt(self.posterior.kernel.diagonal(X))
        size = xp.maximum(xp.max(xp.abs(mean), axis=1), prior)
        excess = error - tolerance * size
        if not (excess <= 0).all():
            row = int(excess.argmax())
            raise ToleranceError(
                f"tolerance: attributions of row {row} are accurate only to {float(error[row]):.1e}"
                f"; the tolerance is {tolerance:.0e} × {float(size[row]):.2g} (the larger of the"
                " attributions and the prior's standard deviation). The kernel or the prior mean"
                " changes too fast along the path, its derivatives are not smooth (run"
                " gpattr.testing.check_kernel to check), or rounding does not allow more; a larger"
                " tolerance= accepts it"
            )

    def joint(self, X: Array) -> Array:
        posterior, xp = self.posterior, namespace(X)
        posterior.check_range(X)
        n, q, m = len(X), self.operator.size(X.shape[1]), len(posterior.inputs)
        check_joint_memory(n, q)
        result = weighted_between(self.formulas, self.operator, X).reshape(n * q, n * q)
        T = xp.empty((n * q, m))
        R = None if posterior.trend is None else xp.empty((n * q, posterior.trend.root.shape[1]))
        for rows in blocks(n, 32.0 * q * m, X):
            here, part = slice(rows.start * q, rows.stop * q), self.operator.rows(rows)
            cross = weighted_cross(self.formulas, part, X[rows], posterior.inputs).value
            if R is not None:
                R[here] = self._trend(part, X[rows], cross).reshape(-1, R.shape[1])
            T[here] = posterior.solve(cross.reshape(-1, m))
        if R is not None:
            result += outer_products(R)
        return covariance(result - posterior.explained(T)).reshape(n, q, n, q)

    def rows_covariance(self, X: Array, gather: Any = None) -> Array:
        """Return the covariance between rows of each output, 𝒜ᵢk𝒜ᵢᵀ − Vᵢ(I − RRᵀ)Vᵢᵀ.

        The prior's part is formed for blocks of pairs of rows, and only what belongs to one output
        is kept; Vᵢ is formed for blocks of outputs.
        """
        self.posterior.check_range(X)
        xp, n, q = namespace(X), len(X), self.operator.size(X.shape[1])
        m, G = len(self.posterior.inputs), gathering(gather, q, X)
        result = rows_covariance_of(n, q, G, X)
        self._fill_prior(result, X, G)
        # Twice the working memory: for each block of outputs the cross term is evaluated again.
        for some in blocks(len(result), 4.0 * n * m, X):
            V, R = self._solved(X, G, some)
            result[some] = result[some] - self.posterior.explained(V)
            if R is not None:
                result[some] = result[some] + R @ xp.swapaxes(R, 1, 2)
        return covariance(result)

    def _fill_prior(self, result: Array, X: Array, G: Array | None) -> None:
        """Fill in the prior covariance between rows, strip by strip."""
        xp, n, q = namespace(X), len(X), self.operator.size(X.shape[1])
        pairs = next(blocks(n * n, 32.0 * q * q, X)).stop  # of rows that fit into working memory
        side = max(1, int(pairs**0.5))
        strips = [slice(start, min(start + side, n)) for start in range(0, n, side)]
        for k, left in enumerate(strips):
            for right in strips[k:]:
                own, other = self.operator.rows(left), self.operator.rows(right)
                pair = (None, None) if left == right else (X[right], other)
                part = output_by_output(weighted_between(self.formulas, own, X[left], *pair), G)
                result[:, left, right], result[:, right, left] = part, xp.swapaxes(part, 1, 2)

    def _solved(self, X: Array, G: Array | None, some: slice) -> tuple[Array, Array | None]:
        """Return V (k, n, m) and the uncertain trend (k, n, p) of some outputs."""
        posterior, xp, n, m = self.posterior, namespace(X), len(X), len(self.posterior.inputs)
        V = xp.empty((some.stop - some.start, n, m))
        trend = posterior.trend
        R = None if trend is None else xp.empty((len(V), n, trend.root.shape[1]))
        for rows in blocks(n, 32.0 * self.operator.size(X.shape[1]) * m, X):
            part = self.operator.rows(rows)
            whole = weighted_cross(self.formulas, part, X[rows], posterior.inputs).value
            cross = _gathered(whole, G, some)
            if R is not None and trend is not None and self.trend_formulas is not None:
                images = weighted_images(self.trend_formulas, part, X[rows], len(trend.basis))
                basis = _gathered(images, G, some)
                R[:, rows] = xp.swapaxes(trend.residual(basis, cross), 0, 1)
            solved = posterior.solve(cross.reshape(-1, m)).reshape(cross.shape)
            V[:, rows] = xp.swapaxes(solved, 0, 1)
        return V, R

    def covariance_with_values(self, X: Array, candidates: Array, gather: Any = None) -> Array:
        """Return 𝒜k(·, p) − V(I − RRᵀ)T(p), and the part of uncertain coefficients, (n, q, c).

        Candidates are solved for once, rows block by block.
        """
        posterior, trend = self.posterior, self.posterior.trend
        posterior.check_range(X)
        posterior.check_range(candidates, "candidates")
        n, q, c = len(X), self.operator.size(X.shape[1]), len(candidates)
        m, G = len(posterior.inputs), gathering(gather, q, X)
        result = values_covariance_of(n, q, c, G, X)
        check_memory("candidates: what is solved for them", (c, m), "use fewer")
        T, P = posterior.whitened(candidates)
        some = slice(0, result.shape[1])
        for rows in blocks(n, 32.0 * q * (m + c), X):
            part = self.operator.rows(rows)
            prior, error = weighted_cross(self.formulas, part, X[rows], candidates)
            if self._bounded:
                self._require_cross_accuracy(X[rows], candidates, rows.start, error)
            cross = weighted_cross(self.formulas, part, X[rows], posterior.inputs).value
            prior, cross = _gathered(prior, G, some), _gathered(cross, G, some)
            if trend is not None and P is not None and self.trend_formulas is not None:
                images = weighted_images(self.trend_formulas, part, X[rows], len(trend.basis))
                R = trend.residual(_gathered(images, G, some), cross)
                prior = prior + product(R, P.T)
            V = posterior.solve(cross.reshape(-1, m))
            result[rows] = prior - posterior.explained_between(V, T).reshape(prior.shape)
        return result

    def contributions(self, X: Array) -> Array:
        """Return αₘ 𝒜k(·, zₘ)(xₙ), (n, q, m): the share of each training row in each mean.

        Their sum over m is the mean less the prior mean's share.
        """
        posterior = self.posterior
        if posterior.training_inputs is None:
            return super().contributions(X)
        posterior.check_range(X)
        q, m = self.operator.size(X.shape[1]), len(posterior.inputs)
        check_memory("The contributions", (len(X), q, m), "use fewer rows")
        cross = weighted_cross(self.formulas, self.operator, X, posterior.inputs).value
        return cross * posterior.alpha


@dataclass(frozen=True, eq=False)
class _Block:
    """Cα, (r, q), variances and covariances of some rows, and bounds on their errors, (r,)."""

    mean: Array | None
    mean_error: Array
    var: Array
    cov: Array
    error: Array
    solved: int


def _gathered(cross: Array, G: Array | None, some: slice) -> Array:
    """Return ``some`` of the outputs of cross (r, q, m), or of the columns of Gᵀ cross."""
    if G is None:
        return cross if some == slice(0, cross.shape[1]) else cross[:, some] + 0.0
    return namespace(cross).swapaxes(G[:, some], 0, 1) @ cross
