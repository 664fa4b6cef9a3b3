"""The tables where operators meet kernels, bases and means, and the verbs that use them."""

from gpattr.closed_forms import (
    cosine,
    gradient,
    integrated_gradients,
    integrated_hessians,
    mean_gradients,
    radial,
    squared_exponential,
)
from gpattr.closed_forms.asking import asked
from gpattr.closed_forms.dependence import points as dependence_points
from gpattr.closed_forms.dependence import resolution as dependence_resolution
from gpattr.closed_forms.derivatives import (
    DERIVATIVES,
    Jet,
    differentiate,
    register_derivatives,
)
from gpattr.closed_forms.mean_gradients import MEAN_GRADIENTS, register_mean_gradient
from gpattr.closed_forms.quadrature.fixed_rules import FIXED_RULES, METHODS
from gpattr.closed_forms.resolution import basis_formulas_for, formulas_for, mean_formulas_for
from gpattr.closed_forms.shapley import bases as shapley_bases
from gpattr.closed_forms.shapley import means as shapley_means
from gpattr.closed_forms.shapley import resolution as shapley_resolution
from gpattr.closed_forms.table import (
    BASES,
    KERNELS,
    MEANS,
    BasisFormulas,
    Bounded,
    Formulas,
    MeanFormulas,
    register,
    register_basis,
    register_mean,
)
from gpattr.closed_forms.verbs import (
    apply_to_basis,
    apply_to_mean,
    between,
    bounded_cross,
    bounded_prior_cov,
    contract,
    contract_basis,
    cross,
    cross_dot,
    error,
    prior_cov,
)

# Inside, formulas call each other as they are; arguments from outside are checked.
apply_to_basis = asked(apply_to_basis)
apply_to_mean = asked(apply_to_mean)
basis_formulas_for = asked(basis_formulas_for)
between = asked(between)
bounded_cross = asked(bounded_cross)
bounded_prior_cov = asked(bounded_prior_cov)
contract = asked(contract)
contract_basis = asked(contract_basis)
cross = asked(cross)
cross_dot = asked(cross_dot)
differentiate = asked(differentiate)
error = asked(error)
formulas_for = asked(formulas_for)
mean_formulas_for = asked(mean_formulas_for)
prior_cov = asked(prior_cov)
register = asked(register)
register_basis = asked(register_basis)
register_mean = asked(register_mean)

__all__ = [
    "BASES",
    "DERIVATIVES",
    "FIXED_RULES",
    "KERNELS",
    "MEANS",
    "MEAN_GRADIENTS",
    "METHODS",
    "BasisFormulas",
    "Bounded",
    "Formulas",
    "Jet",
    "MeanFormulas",
    "apply_to_basis",
    "apply_to_mean",
    "basis_formulas_for",
    "between",
    "bounded_cross",
    "bounded_prior_cov",
    "contract",
    "contract_basis",
    "cosine",
    "cross",
    "cross_dot",
    "dependence_points",
    "dependence_resolution",
    "differentiate",
    "error",
    "formulas_for",
    "gradient",
    "integrated_gradients",
    "integrated_hessians",
    "mean_formulas_for",
    "mean_gradients",
    "prior_cov",
    "radial",
    "register",
    "register_basis",
    "register_derivatives",
    "register_mean",
    "register_mean_gradient",
    "shapley_bases",
    "shapley_means",
    "shapley_resolution",
    "squared_exponential",
]
