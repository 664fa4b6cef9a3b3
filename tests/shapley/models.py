"""Kernels, posteriors and baselines on which Shapley values are measured."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
import pandas as pd
from tests.reference.definition import (
    bend,
    bend_jacobian,
    bump,
    bump_gradient,
    exponential,
    exponential_gradient,
    exponential_mixed,
)

from gpattr import Baselines, kernels, means
from gpattr.bases import Combined, Fourier, Hilbert, Monomials
from gpattr.encoders import Encoder
from gpattr.kernels import Select
from gpattr.operators import Marginals
from gpattr.posteriors import (
    AffinePosterior,
    CombinationPosterior,
    EncodedPosterior,
    ExactPosterior,
    LaplacePosterior,
    MixturePosterior,
    SparsePosterior,
    WeightSpacePosterior,
)

SE, PERIODIC, LINEAR = kernels.SquaredExponential, kernels.Periodic, kernels.Linear
M12, M32, M52 = kernels.Matern12, kernels.Matern32, kernels.Matern52
RNG = np.random.default_rng(22)


def numbers(*words):
    """Return a generator that belongs to these words, whatever was drawn before."""
    return np.random.default_rng(zlib.crc32(" ".join(map(str, words)).encode()))


def scales(d):
    """Length-scales between 0.6 and 3."""
    return np.exp(RNG.uniform(np.log(0.6), np.log(3.0), size=d))


def radial(kind, d, **options):
    return d, kind(scales(d), float(RNG.uniform(0.3, 3.0)), **options)


PRODUCTS = {  # kernels whose Shapley values have closed forms, or are enumerated
    "one feature": radial(SE, 1),
    "two features": radial(SE, 2),
    "isotropic": (4, SE(1.7, 2.0)),
    "six features": radial(SE, 6),
    "ten features": radial(SE, 10),
    "separable Matérn 1/2": (5, kernels.separable(M12, scales(5))),
    "separable Matérn 3/2": (4, 2.5 * kernels.separable(M32, scales(4))),
    "separable Matérn 5/2": (6, kernels.separable(M52, scales(6))),
    "periodic": (4, PERIODIC(scales(4), 2.0 + scales(4), 0.7)),
    "squared exponential × periodic": (3, SE(scales(3)) * PERIODIC(1.2, 3.0)),
    "product of rational quadratics": (
        3,
        kernels.Product(
            *(Select(kernels.RationalQuadratic(1.5, alpha=0.7), [i]) for i in range(3))
        ),
    ),
    "squared exponential × linear of one": (4, SE(scales(4)) * Select(LINEAR(0.8), [1])),
    "squared exponential × linear": (4, SE(scales(4)) * LINEAR(scales(4))),
    "sum and scales": (5, 0.3 * SE(scales(5)) + 2.0 * SE(scales(5)) + kernels.Constant(3.0)),
    "nested": (4, 0.5 * (SE(0.9) + LINEAR()) * (Select(SE(), [1]) + 0.3) + kernels.White(0.1)),
    "selections": (
        6,
        Select(SE(1.3), [0, 2]) + Select(SE([1.0, 2.0, 0.7]), [5, 1, 2]) + Select(M12(), [4]),
    ),
    "product of selections": (5, Select(SE(1.4), [0, 3]) * Select(M32(1.2), [2])),
    "linear": (7, LINEAR(scales(7))),
    "polynomial of degree 2": (5, kernels.Polynomial(scales(5), degree=2, offset=0.8)),
    "polynomial of degree 3": (4, kernels.Polynomial(0.6, degree=3, offset=1.5)),
    "polynomial of degree 5": (3, kernels.Polynomial(0.5, degree=5, offset=0.2)),
    "full additive": (6, kernels.FullAdditive([SE(s) for s in scales(6)], [1.0, 0.5, 0.3])),
    "full additive of several kinds": (
        4,
        kernels.FullAdditive([SE(1.2), M52(0.8), PERIODIC(1.0, 4.0), M12(2.0)], [0.7, 0.2, 0.4]),
    ),
    "cosine": (4, kernels.Cosine(3.0 * scales(4), 1.4)),
    "cosine × squared exponential": (3, kernels.Cosine(5.0) * SE(scales(3))),
    "warped": (2, kernels.Warped(SE(0.9), bend, bend_jacobian)),
    "rescaled": (3, kernels.Rescaled(SE(scales(3)), bump, bump_gradient)),
    "function": (3, kernels.Function(exponential, exponential_gradient, exponential_mixed)),
}
MIXTURES = {  # radial kernels that are no products over features
    "Matérn 1/2": radial(M12, 4),
    "Matérn 3/2": radial(M32, 5),
    "Matérn 5/2": radial(M52, 6),
    "Matérn 5/2 of ten features": radial(M52, 10),
    "Matérn 7/2": radial(kernels.Matern, 3, nu=3.5),
    "Matérn 1.2": radial(kernels.Matern, 3, nu=1.2),
    "rational quadratic 0.3": radial(kernels.RationalQuadratic, 4, alpha=0.3),
    "rational quadratic 2": radial(kernels.RationalQuadratic, 5, alpha=2.0),
    "rational quadratic 50": radial(kernels.RationalQuadratic, 3, alpha=50.0),
    "groups": (4, Select(M52(scales(2)), [0, 2]) * Select(SE(1.5), [1]) + Select(M32(1.1), [1, 3])),
    "Matérn × squared exponential": (3, M52(1.3) * SE(2.0)),
    "Matérn × linear": (3, M32(1.3) * Select(LINEAR(), [0])),
}
KERNELS = PRODUCTS | MIXTURES


@dataclass(frozen=True)
class Problem:
    """A posterior, rows (n, d), a baseline and the player of each column (None: its own)."""

    posterior: object
    rows: np.ndarray
    baseline: object
    owner: list[int] | None


def exact(name):
    """The posterior of a kernel given 25 rows, of the size that it expects."""
    d, kernel = KERNELS[name]
    rng = numbers(name)
    Z = rng.normal(size=(25, d))
    size = float(np.sqrt(kernel.diagonal(Z).mean()))
    y = size * (np.sin(Z[:, 0]) + Z[:, -1] * Z[:, d // 2] + 0.3 * rng.normal(size=25))
    return ExactPosterior(kernel, Z, y, noise=0.1 * size**2)


BASELINES = ("point", "one per row", "set", "marginals")


def players(d):
    """Every second column of the first half moves with one of the second: (d + 1) // 2 players."""
    return [i % ((d + 1) // 2) for i in range(d)]


def problem(posterior, baseline, *, grouped=False, n=2, d=None):
    """Rows and a baseline; the first row has a value of the baseline in its last column."""
    d = posterior.n_columns if d is None else d
    rng, weights = numbers(baseline, grouped, n, d), np.array([0.2, 0.5, 0.3])
    rows, starts = 1.2 * rng.normal(size=(n, d)), rng.normal(size=(3, d))
    if d > 1:
        rows[0, -1] = starts[0, -1]
    owner = players(d) if grouped else None
    if d > 6:  # so that coalitions can be enumerated in no time
        rows, owner = rows[:1], owner if baseline == "point" else players(d)
    chosen = {
        "point": starts[0],
        "one per row": np.resize(starts, (len(rows), d)),
        "set": Baselines(starts, weights),
        "marginals": Marginals(starts[:2], [0.35, 0.65]),
    }[baseline]
    return Problem(posterior, rows, chosen, owner)


# One model of each kind.

Z = RNG.normal(size=(25, 3))
Y = np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2]
KERNEL = SE([1.5, 2.0, 2.5], 1.3) + 0.5 * Select(SE(2.0), [0, 2]) + 0.3 * LINEAR()
EXACT = ExactPosterior(KERNEL, Z, Y, noise=0.05)
OTHER = ExactPosterior(SE(3.0), Z, Y, noise=0.2)
UNITS = {"shift": [0.5, -1.0, 0.2], "scale": [2.0, 0.5, -3.0]}
BASES = {
    "waves": Fourier(RNG.normal(size=(9, 3)), RNG.normal(size=3)),
    "box": Hilbert([0.0, 0.3, 0.0], [6.0, 7.0, 5.0], (3, 4, 5)),
    "monomials": Monomials.up_to(
        3, 3, constant=True, origin=[0.5, 0.0, -1.0], scale=[1.0, 2.0, 0.5]
    ),
    "additive": Combined(
        (Hilbert([0.0, 1.0], [6.0, 7.0], (4, 3)), Fourier(RNG.normal(size=(5, 1)))),
        ((2, 0), (1,)),
        3,
    ),
}
MEANS = {
    "constant": means.Constant(2.0),
    "linear": means.Linear([0.5, -1.0, 2.0], 0.3),
    "linear, uncertain": means.Linear(np.ones(3), 0.5, covariance=np.diag([1.0, 0.5, 0.2, 2.0])),
    "linear, flat": means.Linear(np.zeros(3), covariance="flat"),
    "polynomial": means.Polynomial([0.5, 1.0, -0.3], [[1, 0, 1], [2, 1, 1], [0, 3, 0]]),
    "polynomial, uncertain": means.Polynomial(
        [0.5, 1.0], [[1, 1, 0], [0, 2, 1]], covariance=np.diag([0.1, 0.4])
    ),
    "function": means.Function(
        lambda X: np.sin(X[:, 0]) * X[:, 1] + X[:, 2] ** 2,
        lambda X: np.stack([np.cos(X[:, 0]) * X[:, 1], np.sin(X[:, 0]), 2 * X[:, 2]], axis=1),
    ),
}


def weight_space(basis, **options):
    p = len(basis)
    root = RNG.normal(size=(p, p)) / p**0.5
    return WeightSpacePosterior(basis, RNG.normal(size=p), root @ root.T, **options)


POSTERIORS = {
    "exact": EXACT,
    "sparse": SparsePosterior.fit(KERNEL, Z[:12], Z, Y, noise=0.05),
    "latent of a classifier": LaplacePosterior(KERNEL, Z, (Y > 0) * 1.0),
    "mixture": MixturePosterior([EXACT, OTHER], [0.7, 0.3]),
    "affine": AffinePosterior(EXACT, **UNITS),
    "a column used twice": AffinePosterior(EXACT, **UNITS, source=[0, 3, 0], n_features=4),
    "combination": CombinationPosterior([EXACT, OTHER], [2.0, -1.0]),
    "scaled mixture": AffinePosterior(MixturePosterior([EXACT, OTHER], [0.7, 0.3]), **UNITS),
    **{f"weight space: {name}": weight_space(basis) for name, basis in BASES.items()},
    "weight space with a mean": weight_space(BASES["waves"], mean=MEANS["polynomial"]),
    "mixture of bases": MixturePosterior([EXACT, weight_space(BASES["waves"])]),
    **{
        f"mean: {name}": ExactPosterior(KERNEL, Z, Y, noise=0.05, mean=mean)
        for name, mean in MEANS.items()
    },
}

# A frame with a category of three levels: five columns of three features.

LEVELS = np.array(["u", "v", "w"])
FRAME = pd.DataFrame({"a": Z[:, 0], "kind": LEVELS[np.arange(25) % 3], "b": Z[:, 1]})
ENCODER = Encoder(("a", "kind", "b"), {"kind": ("u", "v", "w")})
CODES = ENCODER.encode("X", FRAME)
ENCODED = EncodedPosterior(ExactPosterior(SE(2.0), CODES, Y, noise=0.1), ENCODER)
OWNER = [0, 1, 1, 1, 2]
