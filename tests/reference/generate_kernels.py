"""Write kernels.npz and crossings.npz beside this file: attributions of many kernels from the
definition, with 50 digits.

python -m tests.reference.generate_kernels        (an hour; gmpy2 makes it faster)
"""

from pathlib import Path

import numpy as np
from tests.reference import definition

from gpattr.kernels import (
    Cosine,
    FullAdditive,
    Linear,
    Matern32,
    Matern52,
    Periodic,
    Polynomial,
    RationalQuadratic,
    Rescaled,
    Select,
    SquaredExponential,
    Warped,
    separable,
)

HERE = Path(__file__).parent
CASES = 1000


def kernel_of(number, rng):
    """One of eighteen kinds of kernels, with random hyperparameters, on two features."""
    size = lambda: float(np.exp(rng.uniform(-0.7, 0.7)))  # noqa: E731
    scale = [size(), size()]
    kinds = [
        lambda: Matern32(scale, size()),
        lambda: Matern52(scale, size()),
        lambda: RationalQuadratic(scale, size(), alpha=size()),
        lambda: SquaredExponential(scale, size()),
        lambda: Periodic(scale, [4 * size(), 4 * size()], size()),
        lambda: Cosine([4 * size(), 4 * size()], size()),
        lambda: Linear(scale) * Matern52(size()),
        lambda: Polynomial(scale, degree=3, offset=size()),
        lambda: separable(Matern32, scale),
        lambda: separable(Matern52, scale),
        lambda: Matern32(size()) * SquaredExponential(scale) + 0.5 * Matern52(size()),
        lambda: FullAdditive([Matern32(size()), SquaredExponential(size())], [size(), size()]),
        lambda: FullAdditive([Matern52(size()), Matern52(size())], [size(), size()]),
        lambda: Rescaled(Matern52(scale), definition.bump, definition.bump_gradient),
        lambda: Warped(SquaredExponential(scale), definition.bend, definition.bend_jacobian),
        lambda: (
            Warped(
                RationalQuadratic(scale, alpha=size()), definition.bend, definition.bend_jacobian
            )
            * Linear()
        ),
        lambda: Select(Matern32(size()), [0]) * Periodic(size(), 4 * size()),
        lambda: Matern32(scale) * Matern52(size()),
    ]
    return kinds[number % len(kinds)]()


def case_of(number):
    """A kernel, a baseline, a row and a point: beside the path, on it, 1e-8 and 1e-3 from it, at
    its ends; short, usual, long.
    """
    rng = np.random.default_rng([20261115, number])
    kernel = kernel_of(number, rng)
    b, direction = rng.normal(size=2), rng.normal(size=2)
    length = (1e-6, 1e-2, 0.5, 2.0, 2.0, 6.0, 20.0)[rng.integers(7)]
    x = b + length * direction / np.linalg.norm(direction)
    across = np.array([-direction[1], direction[0]]) / np.linalg.norm(direction)
    aside = (0.0, 1e-8, 1e-3, 0.1, 1.0)[rng.integers(5)]
    t = (0.0, 1.0, rng.uniform(), rng.uniform(), rng.uniform(-0.5, 1.5))[rng.integers(5)]
    return kernel, b, x, b + t * (x - b) + aside * across


def crossing_cases():
    """Two paths that cross, touch, graze, run side by side, or share an end."""
    m32, m52 = Matern32([1.0, 0.7]), Matern52([0.8, 1.2])
    b, x = np.array([-0.5, -0.25]), np.array([0.75, 0.5])
    for kernel in (m52, m32, separable(Matern32, [1.0, 0.7]), m32 * Linear([1.0, 0.5])):
        yield kernel, b, x, np.array([0.5, -0.5]), np.array([-0.25, 0.75])  # crossing
        yield kernel, b, x, b, np.array([0.5, -0.75])  # from the same baseline
    yield m32, b, x, 0.5 * (b + x), np.array([0.5, -0.75])  # from the middle of the first
    yield m52, b, x, b + [0.0, 0.001], x + [0.3, -0.2]  # grazing
    yield m32, b, x, b + [0.25, 0.5], x + [0.25, 0.5]  # side by side
    yield m52, b, x, 0.5 * (b + x), 1.5 * x - 0.5 * b  # along the same line, overlapping


def panels_for(kernel, b, x):
    """Panels of two length-scales; what is warped changes faster than that."""
    warped = isinstance(kernel, Warped) or any(
        isinstance(part, Warped) for part in getattr(kernel, "kernels", ())
    )
    return 1 + int(4 * np.linalg.norm(x - b) if warped else kernel.n_lengthscales(x - b) / 2)


def main():
    truth = []
    for number in range(CASES):
        kernel, b, x, z = case_of(number)
        truth.append(definition.cross(kernel, b, x, z, panels_for(kernel, b, x)))
    np.savez_compressed(HERE / "kernels.npz", cross=np.array(truth))
    np.savez_compressed(
        HERE / "crossings.npz",
        between=np.array([definition.between(*case) for case in crossing_cases()]),
    )


if __name__ == "__main__":
    main()
