"""Shapley values of Gaussian processes: products, mixtures, enumeration and permutations."""
