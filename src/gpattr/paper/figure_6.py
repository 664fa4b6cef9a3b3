"""Figure 6 (appendix): Figure 4 for all eleven features, with attributions and relevances.

The relevance of a normalised feature is 1/ℓᵢ. Features of little relevance have small attributions,
and the error of the rule is soon below their uncertainty; relative to their own size they do not
converge faster than the others.
"""

from __future__ import annotations

import numpy as np

from gpattr.explainer.explainer import Explainer
from gpattr.kernels import SquaredExponential
from gpattr.paper.drawing import bars, canvas, converging, stacked, tidy
from gpattr.paper.experiment import Outcome, Setting
from gpattr.paper.models import std_of, wines

TITLE = "Figure 6 (appendix): all eleven features of a red wine"
RELEVANT = 0.025  # a length-scale of forty standard deviations of the feature
PARTITIONS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 25, 30)


def run(setting: Setting) -> Outcome:
    """Explain one wine by the right-hand rule, feature by feature."""
    data = wines(setting)
    kernel = data.model.kernel_
    assert isinstance(kernel, SquaredExponential)
    relevance = 1.0 / np.asarray(kernel.lengthscale)
    exact = Explainer(data.model, data.average)(data.x)
    setting.progress(f"right-hand rule with up to {PARTITIONS[-1]} partitions")
    rules = [
        Explainer(data.model, data.average, method="right", n_steps=L)(data.x, uncertainty="std")
        for L in PARTITIONS
    ]
    values = np.array([ex.values[0] for ex in rules])  # (steps, d)
    std = np.array([std_of(ex)[0] for ex in rules])
    names = list(exact.feature_names)
    figure = canvas(12.0, 7.8)
    upper, lower = stacked(figure, 2.0, 1.0)
    alcohol, attributions, relevances = lower.subplots(1, 3, width_ratios=[1, 2, 2])
    for i, (name, axes) in enumerate(
        zip(names, [*upper.subplots(2, 5).flat, alcohol], strict=True)
    ):
        rule, own = (values[:, i], std[:, i]), (exact.values[0, i], std_of(exact)[0, i])
        converging(axes, PARTITIONS, rule, own, width=1.4, ms=3, lw=0.9)
        axes.ticklabel_format(axis="y", scilimits=(-3, 3))
        axes.yaxis.get_offset_text().set_size(8)
        tidy(axes, name, "partitions L", "attribution (quality)" if i % 5 == 0 else "")
    bars(attributions, exact.values[0], std_of(exact)[0], names)
    tidy(attributions, "exact attributions, ±1 sd", "quality")
    bars(relevances, relevance, None, names)
    tidy(relevances, "relevance", "1/ℓ of the normalised feature")
    upper.legend(
        *alcohol.get_legend_handles_labels(), loc="outside upper right", ncols=2, fontsize=9
    )
    return Outcome(figure, measure(names, exact.values[0], std_of(exact)[0], values, relevance))


def measure(
    names: list[str], exact: np.ndarray, std: np.ndarray, values: np.ndarray, relevance: np.ndarray
) -> dict[str, float]:
    """Return attributions and relevances, and the errors at five partitions."""
    numbers = {}
    for name in ("alcohol", "sulphates", "total sulfur dioxide"):
        i = names.index(name)
        numbers |= {
            f"{name}: mean": float(exact[i]),
            f"{name}: sd": float(std[i]),
            f"{name}: relevance": float(relevance[i]),
        }
    error, relevant = np.abs(values - exact)[PARTITIONS.index(5)], relevance > RELEVANT
    numbers["features of little relevance"] = float((~relevant).sum())
    for which, chosen in (("relevant features", relevant), ("others", ~relevant)):
        numbers[f"error at L = 5 over sd, median of {which}"] = float(
            np.median((error / std)[chosen])
        )
        numbers[f"error at L = 5 over |attribution|, median of {which}"] = float(
            np.median((error / np.abs(exact))[chosen])
        )
    return numbers
