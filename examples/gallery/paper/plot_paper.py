"""
The figures of the paper
========================

Each experiment is a module of ``gpattr.paper`` that reads like its section. Here they run in their
reduced form, with fewer restarts, models and repetitions."""

from gpattr.paper import (
    axioms,
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
    figure_7,
    linear,
)
from gpattr.paper.experiment import Setting

reduced = Setting(reduced=True)

# %%
# Section 2.1: Bayesian linear regression, where the uncertainty of an attribution is that of a
# weight times a distance.
figure = linear.run(reduced).figure

# %%
# Section 2.2: the seven axioms that single out integrated gradients, each kept to rounding.
figure = axioms.run(reduced).figure

# %%
# Figure 1: the uncertainty of an attribution grows with the distance from the baseline.
figure = figure_1.run(reduced).figure

# %%
# Figure 2: which measurements inform the predicted disease-free time of breast cancer patients?
figure = figure_2.run(reduced).figure

# %%
# Figure 3: normalising the inputs does not change attributions; houses in New Taipei.
figure = figure_3.run(reduced).figure

# %%
# Figure 4: how the right-hand rule with more and more partitions approaches the exact attributions.
figure = figure_4.run(reduced).figure

# %%
# Figure 5: random-feature GPs against the exact GP.
figure = figure_5.run(reduced).figure

# %%
# Figure 6, of the appendix: Figure 4 for all eleven features of the wine.
figure = figure_6.run(reduced).figure

# %%
# Figure 7, of the appendix: the right-hand rule, the trapezoid rule and Simpson's.
figure = figure_7.run(reduced).figure
