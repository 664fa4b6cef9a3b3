"""Formulas of integrated gradients for kernels and means without a closed form of their own.

Products are multiplied out where every term has a closed form; what remains is integrated.
"""

from __future__ import annotations

from functools import cache

from gpattr._core.array import EPS, Array, namespace
from gpattr.closed_forms.products import closed_terms, merged
from gpattr.closed_forms.quadrature.fixed_rules import fixed_rule
from gpattr.closed_forms.quadrature.numeric import quadrature
from gpattr.closed_forms.quadrature.rough_means import integrated_rough_mean
from gpattr.closed_forms.resolution import formulas_for
from gpattr.closed_forms.table import KERNEL_SCHEMES, KERNELS, Bounded, Formulas, register_mean
from gpattr.kernels import Constant, Kernel, Product, Scale, Sum
from gpattr.means import Linear, Mean
from gpattr.operators import IntegratedGradients, Paths
from gpattr.special.quadrature import integrate

SMOOTH_PANELS = 16  # equal panels of a path, with which a smooth mean is integrated
ROUGH = 1e-12  # of the largest attribution: a mean with a larger error is integrated otherwise


def product_formulas(operator: IntegratedGradients, kernel: Product) -> Formulas | None:
    """Return the formulas of a product that was multiplied out; None where it cannot be.

    Which squared exponentials meet depends on the number of features.
    """
    terms = None if kernel.polynomial_degree is not None else closed_terms(kernel)
    if not terms:
        return None

    @cache
    def on(d: int) -> Formulas:
        parts = [
            Scale(merged(leaves, d), scale) if leaves else Constant(scale)
            for scale, leaves in terms
        ]
        return formulas_for(operator, Sum(*parts))

    singles = [leaves[0] for _, leaves in terms if len(leaves) == 1]
    methods = {name for leaf in singles for name in formulas_for(operator, leaf).methods}
    return Formulas(
        cross=lambda paths, Z: on(paths.shape[1]).cross(paths, Z),
        contract=lambda paths, Z, w: on(paths.shape[1]).contract(paths, Z, w),
        prior_cov=lambda paths: on(paths.shape[1]).prior_cov(paths),
        between=lambda paths, other: on(paths.shape[1]).between(paths, other),
        methods=frozenset(methods | {"closed form"}),
    )


def integrated_mean(mean: Mean, paths: Paths) -> Bounded:
    """Return (xᵢ − bᵢ)∫∂ᵢm dt along each path by quadrature, with its error."""
    xp, step = namespace(paths.stop), paths.step

    def slopes(t: Array) -> Array:
        points = paths.at(t).reshape(-1, step.shape[1])
        return mean.gradient(points).reshape(len(t), *step.shape)

    value, error = integrate(slopes, max_panels=SMOOTH_PANELS)
    value, error = value * step, xp.max(error * xp.abs(step), axis=1)
    # What a rule has missed altogether shows here: attributions must add up to m(x) − m(b).
    start, stop = mean(xp.broadcast_to(paths.start, step.shape)), mean(paths.stop)
    rounding = 64.0 * EPS * (xp.abs(start) + xp.abs(stop))
    missed = xp.abs(value.sum(axis=1) - (stop - start)) - rounding
    size = xp.max(xp.abs(value), axis=1)
    rough = xp.nonzero(xp.maximum(error, missed) > ROUGH * size)[0]
    if len(rough):
        parts = integrated_rough_mean(mean, paths[rough])
        value[rough], error[rough] = (xp.asarray(part) for part in parts)
    gap = xp.abs(value.sum(axis=1) - (stop - start))
    return Bounded(value, error + gap + EPS * xp.max(xp.abs(value), axis=1))


def linear_mean(mean: Linear, paths: Paths) -> Bounded:
    """Return coefficientᵢ(xᵢ − bᵢ)."""
    xp = namespace(paths.stop)
    value = xp.asarray(mean.coefficients) * paths.step
    return Bounded(value, 3 * EPS * xp.max(xp.abs(value), axis=1))


KERNELS[IntegratedGradients, Product] = product_formulas
KERNELS[IntegratedGradients, Kernel] = lambda operator, kernel: quadrature(kernel)
KERNEL_SCHEMES[IntegratedGradients] = lambda operator, *rule: fixed_rule(*rule)
register_mean(IntegratedGradients, Mean, integrated_mean, method="quadrature")
register_mean(IntegratedGradients, Linear, linear_mean)
