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
# Section 2.1: Bayesian linear regression, where attributions are weights times distances.
figure = linear.run(reduced).figure

# %%
# Section 2.2: the seven axioms of integrated gradients, which hold up to rounding.
figure = axioms.run(reduced).figure

# %%
# Figure 1: the uncertainty of an attribution grows with the distance from the baseline.
figure = figure_1.run(reduced).figure

# %%
# Figure 2: attributions of the predicted disease-free time of breast cancer patients.
figure = figure_2.run(reduced).figure

# %%
# Figure 3: affine scale invariance: houses in New Taipei, with and without normalised inputs.
figure = figure_3.run(reduced).figure

# %%
# Figure 4: convergence of the right-hand rule to the exact attributions.
figure = figure_4.run(reduced).figure

# %%
# Figure 5: random-feature GPs and the exact GP.
figure = figure_5.run(reduced).figure

# %%
# Figure 6 (appendix): Figure 4 for all eleven features of the wine.
figure = figure_6.run(reduced).figure

# %%
# Figure 7 (appendix): the right-hand, trapezoid and Simpson rules.
figure = figure_7.run(reduced).figure
