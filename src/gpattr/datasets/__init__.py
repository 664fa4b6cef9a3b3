"""Data sets: the paper's published and simulated ones, and functions with known attributions."""

from gpattr.datasets.breast_cancer_prognostic import load_breast_cancer_prognostic
from gpattr.datasets.known_functions import (
    KnownFunction,
    linear_function,
    make_heteroscedastic,
    product_function,
    sine_product,
)
from gpattr.datasets.taipei_housing import load_taipei_housing
from gpattr.datasets.wine_quality import load_wine_quality

__all__ = [
    "KnownFunction",
    "linear_function",
    "load_breast_cancer_prognostic",
    "load_taipei_housing",
    "load_wine_quality",
    "make_heteroscedastic",
    "product_function",
    "sine_product",
]
