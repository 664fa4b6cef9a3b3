"""The table where operators meet kernels: few verbs, one function for each pair, the same verbs by quadrature."""

from gpattr.closed_forms import gradient, squared_exponential
from gpattr.closed_forms.means import attribute_mean
from gpattr.closed_forms.table import CLOSED_FORMS, Rule, register
from gpattr.closed_forms.verbs import METHODS, auto, between, cross, cross_dot, error, rule_for

__all__ = [
    "CLOSED_FORMS",
    "METHODS",
    "Rule",
    "attribute_mean",
    "auto",
    "between",
    "cross",
    "cross_dot",
    "error",
    "gradient",
    "register",
    "rule_for",
    "squared_exponential",
]
