"""The table where operators meet kernels: few verbs, one function for each pair, the same verbs by
quadrature.
"""

from gpattr.closed_forms import cosine, radial, squared_exponential
from gpattr.closed_forms.asking import asked
from gpattr.closed_forms.derivatives import DERIVATIVES, Jet, differentiate, register_derivatives
from gpattr.closed_forms.features import FEATURES, features, register_features, weighted_features
from gpattr.closed_forms.means import attribute_mean
from gpattr.closed_forms.quadrature.fixed_rules import FIXED_RULES, METHODS
from gpattr.closed_forms.table import CLOSED_FORMS, Bounded, Rule, register
from gpattr.closed_forms.verbs import (
    auto,
    between,
    bounded_auto,
    bounded_cross,
    cross,
    cross_dot,
    error,
    estimate,
    rule_for,
)

# Inside, formulas call each other as they are; what comes from outside is looked at.
attribute_mean = asked(attribute_mean)
auto = asked(auto)
between = asked(between)
bounded_auto = asked(bounded_auto)
bounded_cross = asked(bounded_cross)
cross = asked(cross)
cross_dot = asked(cross_dot)
differentiate = asked(differentiate)
error = asked(error)
estimate = asked(estimate)
features = asked(features)
register = asked(register)
rule_for = asked(rule_for)
weighted_features = asked(weighted_features)

__all__ = [
    "CLOSED_FORMS",
    "DERIVATIVES",
    "FEATURES",
    "FIXED_RULES",
    "METHODS",
    "Bounded",
    "Jet",
    "Rule",
    "attribute_mean",
    "auto",
    "between",
    "bounded_auto",
    "bounded_cross",
    "cosine",
    "cross",
    "cross_dot",
    "differentiate",
    "error",
    "estimate",
    "features",
    "radial",
    "register",
    "register_derivatives",
    "register_features",
    "rule_for",
    "squared_exponential",
    "weighted_features",
]
