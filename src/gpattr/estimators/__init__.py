"""scikit-learn estimators that fit and hand out a posterior."""

from gpattr.estimators.gp_regressor import GPRegressor
from gpattr.estimators.hyperparameters import register_gradient

__all__ = ["GPRegressor", "register_gradient"]
