"""Attributions from the definition alone, with mpmath: kernel values, differentiated and integrated
with 50 digits.

Nothing here uses gpattr but the parameters of its kernels: derivatives are differences of values
1e-15 apart, integrals are Gauss–Legendre panels that halve towards wherever some part of the kernel
has distance zero."""

from __future__ import annotations

import mpmath as mp
import numpy as np
from tests.reference.generate import gauss_legendre

from gpattr import kernels as k

mp.mp.dps = 50
H = mp.mpf(10) ** -15


# Functions of the user's kind, in NumPy for the library and in mpmath for the truth.
def bump(X):
    return np.exp(-(X[:, 0] ** 2) / 8)


def bump_gradient(X):
    return np.column_stack([-X[:, 0] / 4 * bump(X), *[np.zeros(len(X))] * (X.shape[1] - 1)])


def bend(X):
    return np.column_stack([X[:, 0] + 0.25 * X[:, 1] ** 2, np.sin(X[:, 1])])


def bend_jacobian(X):
    one, zero = np.ones(len(X)), np.zeros(len(X))
    return np.stack(
        [np.stack([one, 0.5 * X[:, 1]], axis=1), np.stack([zero, np.cos(X[:, 1])], axis=1)], axis=1
    )


def exponential(x, y):
    return np.exp((x * y).sum(axis=-1) / 4)


def exponential_gradient(x, y):
    return exponential(x, y)[..., None] * y / 4


def exponential_mixed(x, y):
    outer = y[..., :, None] * x[..., None, :] / 4
    return exponential(x, y)[..., None, None] / 4 * (np.eye(x.shape[-1]) + outer)


def radial(kernel, x, y, profile):
    scale = np.broadcast_to(kernel.lengthscale, len(x))
    return kernel.variance * profile(
        mp.sqrt(
            mp.fsum(((a - b) / mp.mpf(float(s))) ** 2 for a, b, s in zip(x, y, scale, strict=True))
        )
    )


def value(kernel, x, y):
    """k(x, y) for lists of mpf."""
    per_feature = lambda p: [mp.mpf(float(v)) for v in np.broadcast_to(p, len(x))]  # noqa: E731
    match kernel:
        case k.SquaredExponential():
            return radial(kernel, x, y, lambda r: mp.exp(-r * r / 2))
        case k.Matern32():
            return radial(kernel, x, y, lambda r: (1 + mp.sqrt(3) * r) * mp.exp(-mp.sqrt(3) * r))
        case k.Matern52():
            return radial(
                kernel,
                x,
                y,
                lambda r: (1 + mp.sqrt(5) * r + 5 * r * r / 3) * mp.exp(-mp.sqrt(5) * r),
            )
        case k.Matern():
            nu = mp.mpf(kernel.nu)

            def profile(s):
                return 2 ** (1 - nu) / mp.gamma(nu) * s**nu * mp.besselk(nu, s) if s else mp.mpf(1)

            return radial(kernel, x, y, lambda r: profile(mp.sqrt(2 * nu) * r))
        case k.RationalQuadratic():
            alpha = mp.mpf(kernel.alpha)
            return radial(kernel, x, y, lambda r: (1 + r * r / (2 * alpha)) ** -alpha)
        case k.Periodic():
            terms = zip(
                x, y, per_feature(kernel.period), per_feature(kernel.lengthscale), strict=True
            )
            return kernel.variance * mp.exp(
                -2 * mp.fsum((mp.sin(mp.pi * (a - b) / p) / s) ** 2 for a, b, p, s in terms)
            )
        case k.Cosine():
            return kernel.variance * mp.cos(
                2
                * mp.pi
                * mp.fsum((a - b) / p for a, b, p in zip(x, y, per_feature(kernel.period)))
            )
        case k.Linear():
            return mp.fsum(v * a * b for a, b, v in zip(x, y, per_feature(kernel.variance)))
        case k.Categorical():
            rho = mp.exp(-1 / mp.mpf(kernel.lengthscale) ** 2)
            return rho + (1 - rho) * mp.fsum(a * b for a, b in zip(x, y))
        case k.Polynomial():
            inner = mp.fsum(v * a * b for a, b, v in zip(x, y, per_feature(kernel.variance)))
            return (inner + mp.mpf(kernel.offset)) ** kernel.degree
        case k.Constant():
            return mp.mpf(kernel.variance)
        case k.Scale():
            return kernel.variance * value(kernel.kernel, x, y)
        case k.Sum():
            return mp.fsum(value(part, x, y) for part in kernel.kernels)
        case k.Product():
            return mp.fprod(value(part, x, y) for part in kernel.kernels)
        case k.Select():
            return value(
                kernel.kernel, [x[i] for i in kernel.features], [y[i] for i in kernel.features]
            )
        case k.FullAdditive():  # subset by subset, as it is defined
            z = [value(base, [a], [b]) for base, a, b in zip(kernel.bases, x, y, strict=True)]
            total = mp.mpf(0)
            for subset in range(1, 2 ** len(z)):
                chosen = [z[i] for i in range(len(z)) if subset >> i & 1]
                if len(chosen) <= len(kernel.order_variances):
                    total += mp.mpf(float(kernel.order_variances[len(chosen) - 1])) * mp.fprod(
                        chosen
                    )
            return total
        case k.Rescaled():
            return mp.exp(-(x[0] ** 2) / 8) * value(kernel.kernel, x, y) * mp.exp(-(y[0] ** 2) / 8)
        case k.Warped():
            phi = lambda v: [v[0] + v[1] ** 2 / 4, mp.sin(v[1])]  # noqa: E731
            return value(kernel.kernel, phi(x), phi(y))
        case k.Function():
            return mp.exp(mp.fsum(a * b for a, b in zip(x, y)) / 4)
    raise TypeError(kernel)


def distances(kernel, d, features=None):
    """The (features, length-scales) in which some part of the kernel has a kink."""
    features = list(range(d)) if features is None else features
    match kernel:
        case k.Matern32() | k.Matern52():
            return [(features, np.broadcast_to(kernel.lengthscale, len(features)))]
        case k.Scale() | k.Rescaled():
            return distances(kernel.kernel, d, features)
        case k.Select():
            return distances(kernel.kernel, d, [features[i] for i in kernel.features])
        case k.Sum() | k.Product():
            return [found for part in kernel.kernels for found in distances(part, d, features)]
        case k.FullAdditive():
            return [
                found
                for i, base in enumerate(kernel.bases)
                for found in distances(base, d, [features[i]])
            ]
    return []


def shifted(x, i, h):
    return [v + h if j == i else v for j, v in enumerate(x)]


def slope(kernel, x, y, i):
    return (value(kernel, shifted(x, i, H), y) - value(kernel, shifted(x, i, -H), y)) / (2 * H)


def mixed(kernel, x, y, i, j):
    return (slope(kernel, x, shifted(y, j, H), i) - slope(kernel, x, shifted(y, j, -H), i)) / (
        2 * H
    )


def mpf(x):
    return [mp.mpf(float(v)) for v in x]


def graded_edges(kernel, p, e, panels):
    """Panel edges on [0, 1] for the path e + t p: even ones, and halving towards each distance
    zero.
    """
    edges = {mp.mpf(i) / panels for i in range(panels + 1)}
    for features, scales in distances(kernel, len(p)):
        pw, ew = ([v[i] / mp.mpf(float(s)) for i, s in zip(features, scales)] for v in (p, e))
        a = mp.fsum(v * v for v in pw)
        if not a:
            continue
        t = min(max(-mp.fsum(u * v for u, v in zip(pw, ew)) / a, mp.mpf(0)), mp.mpf(1))
        rho = mp.sqrt(mp.fsum((u + t * v) ** 2 for u, v in zip(ew, pw)) / a)
        edges.add(t)
        if len(features) > 1 and rho > 1e-13:
            while rho < mp.mpf(1) / panels:
                edges |= {t - rho, t + rho}
                rho *= 2
    return sorted(t for t in edges if 0 <= t <= 1)


def nodes(edges, order):
    return [
        (lo + (hi - lo) * t, (hi - lo) * w)
        for lo, hi in zip(edges, edges[1:])
        for t, w in gauss_legendre(order)
    ]


def cross(kernel, b, x, z, panels=2, order=24):
    """(xᵢ − bᵢ) ∫∂ᵢk(b + t(x − b), z) dt, (d,)."""
    b, x, z = mpf(b), mpf(x), mpf(z)
    p = [u - v for u, v in zip(x, b)]
    rule = nodes(graded_edges(kernel, p, [u - v for u, v in zip(b, z)], panels), order)
    points = [([u + t * v for u, v in zip(b, p)], w) for t, w in rule]
    return np.array(
        [
            float(p[i] * mp.fsum(w * slope(kernel, point, z, i) for point, w in points))
            for i in range(len(p))
        ]
    )


def auto(kernel, b, x, panels=2, order=16):
    """The double integral along one path, (d, d): triangles above and below s = t."""
    b, x = mpf(b), mpf(x)
    p = [u - v for u, v in zip(x, b)]
    at = lambda t: [u + t * v for u, v in zip(b, p)]  # noqa: E731
    even = [mp.mpf(i) / panels for i in range(panels + 1)]
    d = len(p)
    total = mp.matrix(d, d)
    for u, wu in nodes(even, order):
        for v, wv in nodes(even, order):
            t = (1 - u) * v
            weight = wu * wv * (1 - u)
            for i in range(d):
                for j in range(d):
                    term = weight * mixed(kernel, at(t + u), at(t), i, j) * p[i] * p[j]
                    total[i, j] += term
                    total[j, i] += term
    return np.array(total.tolist(), dtype=float)


def between(kernel, b, x, b2, x2, order=8):
    """The double integral between two paths, (d, d): panels in s halve towards the ends of the
    other path and where the two are closest, panels in t, for every s, towards each distance
    zero."""
    b, x, b2, x2 = (mpf(v) for v in (b, x, b2, x2))
    p, q = [u - v for u, v in zip(x, b)], [u - v for u, v in zip(x2, b2)]
    e = [u - v for u, v in zip(b, b2)]
    d = len(p)
    near = closest(kernel, p, q, e)
    outer = set(graded_edges(kernel, p, e, 2)) | set(
        graded_edges(kernel, p, [u - v for u, v in zip(e, q)], 2)
    )
    for s in near:
        outer.add(s)
        width = mp.mpf(2) ** -12
        while width < 1:
            outer |= {s - width, s + width}
            width *= 2
    total = mp.matrix(d, d)
    for s, ws in nodes(sorted(t for t in outer if 0 <= t <= 1), order):
        X = [u + s * v for u, v in zip(b, p)]
        inner = graded_edges(kernel, [-v for v in q], [u - v for u, v in zip(X, b2)], 2)
        for t, wt in nodes(inner, order):
            Y = [u + t * v for u, v in zip(b2, q)]
            for i in range(d):
                for j in range(d):
                    total[i, j] += ws * wt * p[i] * q[j] * mixed(kernel, X, Y, i, j)
    return np.array(total.tolist(), dtype=float)


def closest(kernel, p, q, e):
    """The s at which a kink's distance between the two lines is least, and where the kinks of
    single features cross.
    """
    found, lines = [], []
    for features, scales in distances(kernel, len(p)):
        P, Q, E = ([v[i] / mp.mpf(float(w)) for i, w in zip(features, scales)] for v in (p, q, e))
        if len(features) == 1:
            lines.append((P[0], Q[0], E[0]))
            continue
        pp, qq, pq, pe, qe = (
            mp.fsum(u * v for u, v in zip(*pair))
            for pair in ((P, P), (Q, Q), (P, Q), (P, E), (Q, E))
        )
        if pp * qq - pq * pq > 1e-20:
            found.append((pq * qe - qq * pe) / (pp * qq - pq * pq))
    for i, (p1, q1, e1) in enumerate(lines):
        for p2, q2, e2 in lines[:i]:
            if q1 * p2 != p1 * q2:
                found.append((e1 * q2 - e2 * q1) / (q1 * p2 - p1 * q2))
    return [s for s in found if 0 <= s <= 1]
