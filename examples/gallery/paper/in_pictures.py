"""
The figures of the paper
========================

This page was built without the paper's data, so it shows pictures that were computed before.
``gpattr paper --out figures`` downloads the data, computes every figure and compares 102 numbers
with their expected ranges; :doc:`/paper` has them all."""

# sphinx_gallery_thumbnail_path = "pictures/figure_1.png"

# %%
# Figure 1: the uncertainty of an attribution grows with the distance from the baseline.
#
# .. image:: /pictures/figure_1.png
#    :alt: Surface, prediction, attributions and their variances along the diagonal
#
# Figure 2: attributions of the predicted disease-free time of breast cancer patients.
#
# .. image:: /pictures/figure_2.png
#    :alt: Attributions of six patients; two features across fifty patients
#
# Figure 3: affine scale invariance: houses in New Taipei, with and without normalised inputs.
#
# .. image:: /pictures/figure_3.png
#    :alt: House 262 and its attributions, as it is and normalised
#
# Figure 4: convergence of the right-hand rule to the exact attributions.
#
# .. image:: /pictures/figure_4.png
#    :alt: Mean and standard deviation against the number of partitions
#
# Figure 5: random-feature GPs and the exact GP.
#
# .. image:: /pictures/figure_5.png
#    :alt: Densities of the attribution of alcohol for 10, 50 and 100 frequencies
#
# Figure 6 (appendix): Figure 4 for all eleven features of the wine.
#
# .. image:: /pictures/figure_6.png
#    :alt: Convergence for eleven features, exact attributions and relevances
#
# Figure 7 (appendix): the right-hand, trapezoid and Simpson rules.
#
# .. image:: /pictures/figure_7.png
#    :alt: Four rules against partitions and evaluations, and their errors
