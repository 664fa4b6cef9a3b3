"""Integrated Hessians from values of f alone, and of polynomials in closed form.

Γᵢⱼ = pᵢpⱼ ∫₀¹ (−s ln s) ∂ᵢ∂ⱼf ds + δᵢⱼ pᵢ ∫₀¹ (−ln s) ∂ᵢf ds along b + s p, p = x − b: derivatives
are differences of eighth order, integrals 24 Gauss–Legendre nodes in u, s = u⁵.
"""

from __future__ import annotations

from itertools import product
from math import comb

import numpy as np
from tests.reference.coalitions import distinct

OFFSETS = np.arange(-4, 5)
FIRST = np.array([3, -32, 168, -672, 0, 672, -168, 32, -3]) / 840
SECOND = np.array([-9, 128, -1008, 8064, -14350, 8064, -1008, 128, -9]) / 5040


def log_rule(nodes=24):
    """Return s, and weights of ∫₀¹ (−ln s) g(s) ds; the substitution leaves u⁴ ln u at zero."""
    u, w = np.polynomial.legendre.leggauss(nodes)
    u, w = 0.5 + 0.5 * u, 0.5 * w
    return u**5, w * -5.0 * np.log(u) * 5.0 * u**4


def stencil(i, j, d):
    """Return offsets (k, d) in steps, and weights (k,) of ∂ᵢ∂ⱼ, or of ∂ᵢ where j is None."""
    unit = np.eye(d)
    if j is None or i == j:
        return OFFSETS[:, None] * unit[i], FIRST if j is None else SECOND
    pairs = [(a, b) for a in range(9) for b in range(9)]
    offsets = np.array([OFFSETS[a] * unit[i] + OFFSETS[b] * unit[j] for a, b in pairs])
    return offsets, np.array([FIRST[a] * FIRST[b] for a, b in pairs])


def integrated_hessian(x, b, step):
    """Return Γ (d, d) of one row, flattened, as a sum of values of f; ``step`` (d,) of differences.

    Steps of a tenth of a length-scale leave errors of 1e-9.
    """
    x, b = np.asarray(x, dtype=float), np.asarray(b, dtype=float)
    d, p, step = len(x), x - b, np.broadcast_to(step, len(x))
    s, w = log_rule()
    path = b + s[:, None] * p
    points, terms = [], []
    for i, j in product(range(d), range(d)):
        kinds = [(j, s * w * p[i] * p[j] / (step[i] * step[j]))]
        if i == j:
            kinds.append((None, w * p[i] / step[i]))
        for kind, outer in kinds:
            offsets, inner = stencil(i, kind, d)
            points.append((path[:, None, :] + offsets * step).reshape(-1, d))
            term = np.zeros((d * d, len(s) * len(inner)))
            term[i * d + j] = (outer[:, None] * inner).ravel()
            terms.append(term)
    return distinct([np.concatenate(points)], [np.concatenate(terms, axis=1)])


def about(powers, coefficients, b):
    """Return Σ c ∏ xᵢ^eᵢ in powers of x − b, {exponents: coefficient}, by binomials."""
    terms = {}
    for exponents, c in zip(powers, coefficients):
        for lower in product(*[range(e + 1) for e in exponents]):
            share = c
            for e, k, origin in zip(exponents, lower, b):
                share *= comb(e, k) * origin ** (e - k)
            terms[lower] = terms.get(lower, 0.0) + share
    return terms


def hessian_of_polynomial(powers, coefficients, x, b):
    """Return Γ (d, d) of a polynomial: a term of degree E about b gives eᵢeⱼ/E² of its value.

    ∫(−s ln s) s^{E−2} ds = ∫(−ln s) s^{E−1} ds = 1/E², and pᵢpⱼ∂ᵢ∂ⱼ of the term is eᵢ(eⱼ − δᵢⱼ) of
    it.
    """
    p = np.asarray(x, dtype=float) - b
    total = np.zeros((len(p), len(p)))
    for exponents, c in about(powers, coefficients, b).items():
        e = np.array(exponents)
        if e.sum():
            total += np.outer(e, e) / e.sum() ** 2 * c * np.prod(p**e)
    return total
