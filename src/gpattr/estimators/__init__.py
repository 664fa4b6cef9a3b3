"""scikit-learn estimators that fit and hand out a posterior."""

from gpattr.estimators.gp_regressor import GPRegressor

__all__ = ["GPRegressor"]
