"""Partial dependence for every kernel, against averages of the model's own joint predictions."""

import numpy as np
import pytest
from tests.dependence.reference import cases, compare, steepness
from tests.shapley.models import KERNELS, exact, numbers

from gpattr import kernels
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Select
from gpattr.posteriors import ExactPosterior

SE, M12, M52 = kernels.SquaredExponential, kernels.Matern12, kernels.Matern52
KINDS = (
    "curve",
    "centred",
    "individual",
    "individual, centred",
    "slope",
    "individual slope",
    "surface",
    "surface, centred",
    "individual surface",
)
ROUGH = [  # no derivatives
    name for name, (_, kernel) in KERNELS.items() if "Matern12" in repr(kernel)
]
MORE = {  # of kinds that Shapley values do not distinguish
    "Matérn × Matérn": (3, M52([1.0, 2.0, 0.7]) * kernels.Matern32(1.5)),
    "Matérn × linear": (3, M52(1.2) * kernels.Linear([0.4, 1.0, 0.7])),
    "Matérn × polynomial": (3, M52(1.2) * kernels.Polynomial(0.5, degree=2, offset=0.4)),
    "rational quadratic × periodic": (3, kernels.RationalQuadratic(1.4) * kernels.Periodic(1.0, 5)),
    "scaled warped × squared exponential": (2, 2.0 * KERNELS["warped"][1] * SE(1.4)),
    "scale of a sum": (3, kernels.Scale(M52(1.1) + kernels.Constant(0.4), 2.5)),
    "selection out of order": (4, Select(M52([0.8, 1.5, 2.0]), [3, 0, 2])),
    "Rescaled Matérn": (
        3,
        kernels.Rescaled(M52(1.3), KERNELS["rescaled"][1].factor, KERNELS["rescaled"][1].gradient),
    ),
    "constant": (2, kernels.Constant(2.0) + SE(1.0)),
    "white": (2, M52(1.0) + kernels.White(0.3)),
}


def posterior_of(name):
    if name in KERNELS:
        return exact(name)
    d, kernel = MORE[name]
    rng = numbers(name)
    Z = rng.normal(size=(20, d))
    return ExactPosterior(kernel, Z, np.sin(Z).sum(axis=1), noise=0.1)


def of_kind(posterior, name, kind):
    """The case and the scale of the prior there: of slopes, as steep as they are."""
    rng = numbers(name, kind)
    d, few = posterior.n_features, 3 if "individual" in kind or "slope" in kind else 7
    rows, weights = rng.normal(size=(few, d)), rng.uniform(0.2, 1.0, size=few)
    case = cases(rng, rows, weights / weights.sum()).get(kind)
    if case is None:
        return None, 0.0
    scale = float(np.sqrt(posterior.kernel.diagonal(case.points).max()))
    return case, max(scale, 0.0 if name in ROUGH else steepness(posterior, case))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [*KERNELS, *MORE])
def test_kernels(name, kind):
    """At 1e-12 and 1e-10 of the prior; mixtures, to which many nodes turn, have tests of theirs."""
    posterior = posterior_of(name)
    case, scale = of_kind(posterior, name, kind)
    if case is not None and case.derivative and name in ROUGH:
        with pytest.raises(UnsupportedModelError, match="Matern12"):
            posterior.apply(case.operator, case.sites)
    elif case is not None:
        compare(posterior, case, scale)
