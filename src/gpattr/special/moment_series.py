"""Power series of the path moments in β, which take one exponential for each pair.

About the middle of the path, with G = exp(−(β + c)/2) and s = t − ½,

    Jₖ = G ∫₀¹ tᵏ exp(−a t²/2) exp(−β s) dt = G (P(β²) + β Q(β²)),

where the coefficients of P and Q, ∫ tᵏ exp(−a t²/2) (±s)ʲ/j! dt, depend on the row alone. P's are
positive and Q's have one sign, so nothing cancels but a factor of exp(a/2).

NumPy's exponential takes 5 ns without AVX-512, a product 0.3 ns: a rule of eleven nodes, each an
exponential, takes three times as long.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from gpattr._core.memory import workspace
from gpattr.special.quadrature import gauss_legendre

# (largest |β|, terms of P and of Q): the first term left out, (β/2)^2T/(2T)!, is below 1e-17.
REACHES = ((2.0, 10), (4.0, 13), (8.0, 19))
OUTSIDE = 0.03  # share of the pairs that may lie beyond, and are left to a rule
NODES = 32  # exact for the powers and exp(−a t²/2), a ≤ 4


def reach(beta: np.ndarray) -> tuple[float, int, np.ndarray] | None:
    """Return the least reach for these β (n, m), its terms, and which pairs lie beyond, (2, k).

    None where too many do.
    """
    largest = max(beta.max(), -beta.min())
    for bound, terms in REACHES:
        if largest <= bound:
            return bound, terms, np.empty((2, 0), dtype=int)
        beyond = (beta > bound) | (beta < -bound)
        if np.count_nonzero(beyond) <= OUTSIDE * beta.size:
            return bound, terms, np.array(np.nonzero(beyond))
    return None


def series(
    a: np.ndarray, beta: np.ndarray, c0: np.ndarray, bound: float, terms: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return J₀ and J₁, each (n, m), for |β| ≤ bound; ``a`` (n,) ≤ 4, ``c0`` (m,) or (n, m).

    They are overwritten by the next call of the same thread.
    """
    (n, m), nodes = beta.shape, gauss_legendre(NODES)[0]
    space = workspace("moments", (terms + 5) * n * m).reshape(terms + 5, n, m)
    powers, sums, front = space[:terms], space[terms:-1].reshape(n, 4, m), space[-1]
    weights = np.exp((-0.5 * a)[:, None] * (nodes * nodes)) @ _coefficients(bound, terms)
    powers[0] = 1.0  # of (β/bound)²
    np.multiply(beta, 1.0 / bound, out=powers[1])
    np.multiply(powers[1], powers[1], out=powers[1])
    np.minimum(powers[1], 1.0, out=powers[1])
    for k in range(2, terms):
        np.multiply(powers[k - 1], powers[1], out=powers[k])
    # In columns: a larger product would wake the threads of NumPy's BLAS.
    for start in range(0, m, 2048):
        some = slice(start, start + 2048)
        part = powers[:, :, some].transpose(1, 0, 2)
        np.matmul(weights.reshape(n, 4, terms), part, out=sums[:, :, some])
    np.add(beta, c0, out=front)
    front *= -0.5
    np.exp(front, out=front)
    for odd in (1, 3):
        sums[:, odd] *= beta
        sums[:, odd] += sums[:, odd - 1]
        sums[:, odd] *= front
    return sums[:, 1], sums[:, 3]


@lru_cache(maxsize=8)
def _coefficients(bound: float, terms: int) -> np.ndarray:
    """Return the factors of exp(−a t²/2) at the nodes for P and Q of J₀ and J₁, (N, 4T)."""
    t, w = gauss_legendre(NODES)
    s, scale = t - 0.5, [bound ** (k - k % 2) / math.factorial(k) for k in range(2 * terms)]
    powers = np.stack([w * (-s) ** k * scale[k] for k in range(2 * terms)])
    parts = [moment * powers[first::2] for moment in (1.0, t) for first in (0, 1)]
    return np.concatenate(parts).T.copy()
