"""Random-feature models of the red wine data: convergence to the exact GP, and Figure 5."""

import numpy as np
import pytest
from scipy.stats import norm

from gpattr import Explainer, GPRegressor, RandomFeatureGPRegressor
from gpattr.bases.spectral import SAMPLINGS
from gpattr.kernels import SquaredExponential

# What marginal likelihood finds with a zero mean, rounded.
LENGTHSCALES = [3500, 2.9, 12.0, 5000, 4.7, 400, 250, 0.074, 2.6, 0.71, 3.2]
KERNEL, NOISE = SquaredExponential(lengthscale=LENGTHSCALES, variance=11.0), 0.376
HELD_OUT = 10


@pytest.fixture(scope="module")
def data(wine):
    X, y = wine.drop(columns="quality"), wine["quality"]
    return X.drop(index=HELD_OUT), y.drop(index=HELD_OUT), X.loc[[HELD_OUT]]


@pytest.fixture(scope="module")
def exact(data):
    X, y, _ = data
    return GPRegressor(KERNEL, mean="zero", noise_variance=NOISE, optimize=False).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampling",
    [SAMPLINGS[0], *(pytest.param(way, marks=pytest.mark.slow) for way in SAMPLINGS[1:])],
)
def test_attributions_approach_those_of_the_exact_process(data, exact, sampling):
    """The root-mean-square distance, averaged over ten draws of the frequencies, halves where their
    number quadruples.
    """
    X, y, _ = data
    rows = X.iloc[::40]
    reference = Explainer(exact)(rows, uncertainty="std")
    distances = []
    for M in (25, 100, 400):
        models = (
            RandomFeatureGPRegressor.from_exact(exact, M, sampling=sampling, random_state=s).fit(
                X, y
            )
            for s in range(10)
        )
        explained = [Explainer(model)(rows, uncertainty="std") for model in models]
        distances.append(
            [
                np.mean(
                    [
                        np.sqrt(((getattr(ex, what) - getattr(reference, what)) ** 2).mean())
                        for ex in explained
                    ]
                )
                for what in ("values", "std")
            ]
        )
    ratios = np.array(distances[1:]) / distances[:-1]
    assert ratios[:, 0].max() <= 0.65
    assert ratios[-1, 1] <= 0.65
    assert distances[-1][0] <= 0.1 * np.sqrt((reference.values**2).mean())


@pytest.mark.slow
def test_figure_5_of_the_paper(data, exact):
    """Single models scatter around the exact attribution of alcohol; the mixture of 500 comes close
    to it as M grows.
    """
    X, y, x = data
    baseline = np.zeros(11)
    alcohol = Explainer(exact, baseline)(x)[:, "alcohol"]
    mean, std = float(alcohol.values[0, 0]), float(alcohol.std[0, 0])
    grid = np.linspace(mean - 10 * std, mean + 10 * std, 1001)[:, None, None]
    distance, scatter, within = {}, {}, {}
    for M in (10, 50, 100):
        model = RandomFeatureGPRegressor.from_exact(
            exact, M, ensemble=500, sampling="plain", random_state=0
        ).fit(X, y)
        ex = Explainer(model, baseline)(x)[:, "alcohol"]
        assert len(ex.component_weights) == 500
        density = ex.mixture().density(grid)[:, 0, 0]
        distance[M] = (
            0.5
            * np.abs(density - norm(mean, std).pdf(grid[:, 0, 0])).sum()
            * (grid[1, 0, 0] - grid[0, 0, 0])
        )
        scatter[M] = float(ex.component_values.std()) / std
        within[M] = float(np.sqrt(ex.component_var.mean())) / std
        assert ex.var[0, 0] == pytest.approx(
            ex.component_values.var() + ex.component_var.mean(), rel=1e-10
        )
    # In total variation: 0.2, 0.04, 0.015 of everything.
    assert distance[10] > 0.1
    assert distance[50] < 0.06
    assert distance[100] < 0.03
    # Models agree with each other better and better, and come to know how unsure they should be: M
    # = 10 is far too sure.
    assert scatter[10] > scatter[50] > scatter[100]
    assert within[10] < 0.5
    assert within[10] < within[50] < within[100] < 1.0
