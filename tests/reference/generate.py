"""Write the reference tables beside this file: integrals of the definitions, by mpmath with 50
digits.

    python tests/reference/generate.py        (some minutes; gmpy2 makes it faster)

Nothing here uses gpattr or its closed forms. Inputs are doubles, taken as exact; results are
rounded to double at the very end."""

from pathlib import Path

import mpmath as mp
import numpy as np

mp.mp.dps = 50
HERE = Path(__file__).parent
NODES: dict[int, list] = {}

LENGTHS = [1e-8, 1e-6, 1e-4, 1e-2, 0.3, 0.5, 0.99, 1.7, 2.1, 5.0, 10.0, 30.0, 100.0, 300.0, 1000.0]


def gauss_legendre(order):
    """Nodes and weights on [0, 1] to 50 digits, by Newton's method from NumPy's."""
    if order not in NODES:
        NODES[order] = []
        for start in np.polynomial.legendre.leggauss(order)[0]:
            x = mp.findroot(lambda x: mp.legendre(order, x), mp.mpf(float(start)))
            slope = order * (x * mp.legendre(order, x) - mp.legendre(order - 1, x)) / (x * x - 1)
            NODES[order].append(((1 + x) / 2, 1 / ((1 - x * x) * slope * slope)))
    return NODES[order]


def path_edges(a, beta):
    """Panel edges on [0, 1]: every 1.5 widths near the peak, up to where the integrand is below
    1e-60 of it.
    """
    if a < 1:
        return [mp.mpf(0), mp.mpf(1)]
    width, peak = 1 / mp.sqrt(a), min(max(-beta / a, mp.mpf(0)), mp.mpf(1))
    edges = {mp.mpf(0), mp.mpf(1), peak}
    for k in range(1, 20):
        edges |= {peak + 1.5 * k * width, peak - 1.5 * k * width}
    return sorted(t for t in edges if 0 <= t <= 1)


def integral(f, edges, order=40):
    total = mp.mpf(0)
    for low, high in zip(edges, edges[1:]):
        total += (high - low) * mp.fsum(
            w * f(low + (high - low) * t) for t, w in gauss_legendre(order)
        )
    return total


def moments(a, beta, c, powers, centre=0):
    edges = path_edges(a, beta)
    return [
        integral(
            lambda t, k=k: (t - centre) ** k * mp.exp(-(a * t * t + 2 * beta * t + c) / 2), edges
        )
        for k in powers
    ]


def scalar_tables():
    """Path moments for a grid of lengths, positions of the peak and distances; G₀ and G₂."""
    rows, centred = [], []
    for length in [0.0, *LENGTHS, 0.0999, 0.1001, 1.0, 2.0, 2.0000001]:
        for peak in (-3.0, -1e-3, 0.0, 0.3, 0.5, 1.0, 1.0 + 1e-9, 2.5):
            for rho in (0.0, 1e-6, 0.7, 4.0):
                a = length * length
                beta = -peak * a
                c = rho * rho + peak * peak * a
                A, B, C = map(mp.mpf, (a, beta, c))
                rows.append(
                    [a, beta, c, float(A + 2 * B + C), *map(float, moments(A, B, C, (0, 1)))]
                )
                if length >= 0.99:
                    r2 = mp.mpf(rho * rho)
                    M = moments(A, B, r2 + B * B / A, (0, 1, 2), centre=-B / A)
                    centred.append([a, beta, rho * rho, *map(float, M)])
    g = []
    for a in [0.0, 5e-324, 1e-300, *np.logspace(-16, 6, 89).tolist(), 15.999, 16.0, 16.001]:
        A = mp.mpf(a)
        edges = path_edges(A, mp.mpf(0))
        g.append(
            [
                a,
                *(
                    float(
                        integral(lambda u, j=j: 2 * (1 - u) * u**j * mp.exp(-A * u * u / 2), edges)
                    )
                    for j in (0, 2)
                ),
            ]
        )
    np.savez_compressed(
        HERE / "scalars.npz", moments=np.array(rows), centred=np.array(centred), g=np.array(g)
    )


def exact(array):
    return [mp.mpf(float(v)) for v in array]


def dot(u, v):
    return mp.fsum(x * y for x, y in zip(u, v))


def whitened(difference_of, and_of, lengthscale):
    return [(x - y) / s for x, y, s in zip(exact(difference_of), exact(and_of), exact(lengthscale))]


def path_table():
    """Attributions of unit-variance SE kernels, against training points beside, behind and on the
    path and at both its ends.
    """
    rng = np.random.default_rng(20240311)
    tables = {}
    for d in (1, 2, 7, 50):
        for length in LENGTHS:
            scale = np.exp(rng.normal(size=d))
            b = rng.normal(size=d)
            direction = rng.normal(size=d)
            x = b + scale * length * direction / np.linalg.norm(direction)
            along = (x - b) / (scale * length)
            Z = [b, x, b + 0.37 * (x - b)]  # the ends, and on the path
            Z += [b - 0.8 * scale * along, x + 1.5 * scale * along]  # behind, beyond
            Z += [
                b + t * (x - b) + scale * rng.normal(size=d) / np.sqrt(d)
                for t in (0.0, 0.5, 0.9, 1.0)
            ]  # beside
            Z = np.array(Z)
            p = whitened(x, b, scale)
            a = dot(p, p)
            cross = np.empty((d, len(Z)))
            for m, z in enumerate(Z):
                e = whitened(b, z, scale)
                beta = dot(p, e)
                J0, J1 = moments(a, beta, dot(e, e), (0, 1))
                cross[:, m] = [float(-p[i] * (p[i] * J1 + e[i] * J0)) for i in range(d)]
            edges = path_edges(a, mp.mpf(0))
            G0, G2 = (
                integral(lambda u, j=j: 2 * (1 - u) * u**j * mp.exp(-a * u * u / 2), edges)
                for j in (0, 2)
            )
            auto = [
                [float(p[i] * p[j] * ((G0 if i == j else 0) - p[i] * p[j] * G2)) for j in range(d)]
                for i in range(d)
            ]
            key = f"d{d}_{length:g}"
            values = {
                "lengthscale": scale,
                "b": b,
                "x": x,
                "Z": Z,
                "cross": cross,
                "auto": np.array(auto),
            }
            tables |= {f"{key}/{name}": value for name, value in values.items()}
    np.savez_compressed(HERE / "paths.npz", **tables)


def pair_table():
    """Covariance between two paths by two-dimensional integration: Gauss–Legendre panels of one
    length-scale.
    """
    rng = np.random.default_rng(7)
    cases = []
    for d in (1, 3, 10):
        scale = np.exp(0.5 * rng.normal(size=d))
        unit = lambda: (lambda v: scale * v / np.linalg.norm(v))(rng.normal(size=d))  # noqa: E731
        b = rng.normal(size=d)
        for one, two in [
            (1e-8, 1e-8),
            (1e-6, 1.0),
            (0.3, 0.9),
            (0.99, 1.01),
            (1.5, 3.0),
            (3.0, 12.0),
            (30.0, 1e-4),
            (30.0, 20.0),
        ]:
            u, v = unit(), unit()
            cases += [(scale, b, b + one * u, b, b + two * v)]  # one baseline, two rows
            cases += [(scale, b - one * u, b, b + two * v, b)]  # two baselines, one row
            cases += [
                (scale, b, b + one * u, b + 0.4 * v, b + 0.4 * v + two * u)
            ]  # parallel, side by side
            cases += [
                (scale, b - 0.5 * one * u, b + 0.5 * one * u, b - 0.4 * two * v, b + 0.6 * two * v)
            ]  # crossing
    tables = {}
    for k, case in enumerate(cases):
        scale, b, x, b2, x2 = case
        p, q, e = whitened(x, b, scale), whitened(x2, b2, scale), whitened(b, b2, scale)
        tables |= {
            f"{k}/{name}": value for name, value in zip(("lengthscale", "b", "x", "b2", "x2"), case)
        }
        tables[f"{k}/between"] = pair_covariance(p, q, e)
    np.savez_compressed(HERE / "pairs.npz", **tables)


def pair_covariance(p, q, e, order=22):
    """∫∫ p q exp(−‖u‖²/2)(δ − uu) with u = e + sp − tq: a sum over nodes of six raw moments,
    harmless at 50 digits.
    """
    pp, qq, ee, pq, pe, qe = dot(p, p), dot(q, q), dot(e, e), dot(p, q), dot(p, e), dot(q, e)

    def rule(square):
        panels = int(mp.ceil(mp.sqrt(square))) or 1
        return [
            ((i + t) / panels, w / panels) for i in range(panels) for t, w in gauss_legendre(order)
        ]

    S = mp.matrix(3, 3)  # moments of (1, s, −t)
    for t, wt in rule(qq):
        inner = [mp.mpf(0)] * 3
        linear, constant = pe - t * pq, ee - 2 * t * qe + t * t * qq
        for s, ws in rule(pp):
            exponent = constant + 2 * s * linear + s * s * pp
            if exponent > 240:  # below 1e-52
                continue
            value = ws * mp.exp(-exponent / 2)
            inner[0] += value
            inner[1] += value * s
            inner[2] += value * s * s
        for (i, j), value in {
            (0, 0): inner[0],
            (0, 1): inner[1],
            (1, 1): inner[2],
            (0, 2): -t * inner[0],
            (1, 2): -t * inner[1],
            (2, 2): t * t * inner[0],
        }.items():
            S[i, j] += wt * value
            S[j, i] = S[i, j]
    V = list(zip(e, p, q))
    d = len(p)
    uu = [
        [mp.fsum(V[i][a] * S[a, b] * V[j][b] for a in range(3) for b in range(3)) for j in range(d)]
        for i in range(d)
    ]
    return np.array(
        [
            [float(p[i] * q[j] * ((S[0, 0] if i == j else 0) - uu[i][j])) for j in range(d)]
            for i in range(d)
        ]
    )


if __name__ == "__main__":
    scalar_tables()
    path_table()
    pair_table()
