"""
Lost digits: the printed formula and ours
=========================================

The closed form of a squared-exponential GP's attributions can be written in many mathematically
equivalent forms. In float64 they differ: the formula as printed overflows on long paths and suffers
from cancellation on short ones. Both are compared with 50-digit arithmetic, for one training point
beside the path, from 1e-8 to 1000 length-scales."""

import matplotlib.pyplot as plt
import mpmath
import numpy as np
from scipy.special import erf

from gpattr import closed_forms
from gpattr.kernels import SquaredExponential
from gpattr.operators import IntegratedGradients

kernel, operator = SquaredExponential(), IntegratedGradients(np.zeros(2))
z = np.array([0.3, -0.4])  # the training point; the baseline is 0
lengths = np.logspace(-8, 3, 56)


def printed(x):
    """A and B of the first feature, as in the paper, for unit length-scales and variance, baseline
    0.
    """
    a, b, c, d, f = x @ x, -2 * x @ z, z @ z, -(x[0] ** 2), x[0] * z[0]
    v, w, root = -(x[0] ** 2), 1.0, np.sqrt(2 * a)
    bell = (
        np.sqrt(2 * np.pi)
        * np.exp((2 * a + b) ** 2 / (8 * a))
        * (erf(b / (2 * root)) - erf((2 * a + b) / (2 * root)))
    )
    A = (
        np.exp((-a - b - c) / 2)
        * (bell * (b * d - 2 * a * f) + 4 * np.sqrt(a) * d * (np.exp((a + b) / 2) - 1))
        / (4 * a**1.5)
    )
    drop = 2 * np.exp(-a / 2) * (np.exp(a / 2) - 1) * (a * w + 2 * v) / a**2
    return A, x[0] ** 2 * (np.sqrt(2 * np.pi) * erf(np.sqrt(a / 2)) * (a * w + v) / a**1.5 - drop)


def truth(x):
    """The same by integration with 50 digits."""
    with mpmath.workdps(50):
        (x1, x2), (z1, z2) = map(mpmath.mpf, map(float, x)), map(mpmath.mpf, map(float, z))
        a = x1**2 + x2**2
        peak = max(min((x1 * z1 + x2 * z2) / a, mpmath.mpf(1)), mpmath.mpf(0))
        ends = sorted(
            {
                mpmath.mpf(0),
                mpmath.mpf(1),
                *(max(min(peak + k / mpmath.sqrt(a), 1), 0) for k in range(-12, 13)),
            }
        )
        A = mpmath.quad(
            lambda t: (
                -x1 * (t * x1 - z1) * mpmath.exp(-((t * x1 - z1) ** 2 + (t * x2 - z2) ** 2) / 2)
            ),
            ends,
        )
        near = sorted(
            {
                mpmath.mpf(0),
                mpmath.mpf(1),
                *(min(k / mpmath.sqrt(a), mpmath.mpf(1)) for k in range(1, 13)),
            }
        )
        B = (
            2
            * x1**2
            * mpmath.quad(lambda u: (1 - u) * (1 - x1**2 * u**2) * mpmath.exp(-a * u**2 / 2), near)
        )
        return float(A), float(B)


# %%
# float64 has 16 digits; none are correct where a curve ends in NaN or reaches 0.
errors = np.full((2, 2, len(lengths)), np.nan)  # (printed or ours, A or B, length)
for k, length in enumerate(lengths):
    x = length * np.array([0.8, 0.6])
    exact = truth(x)
    ours = (
        closed_forms.cross(operator, kernel, x[None], z[None])[0, 0, 0],
        closed_forms.prior_cov(operator, kernel, x[None])[0, 0, 0],
    )
    with np.errstate(all="ignore"):
        for row, found in enumerate((printed(x), ours)):
            errors[row, :, k] = np.abs(np.array(found) / exact - 1)
digits = np.where(np.isnan(errors), 0.0, np.clip(-np.log10(np.maximum(errors, 1e-16)), 0, 16))

fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for part, (ax, title) in enumerate(
    zip(axes, ("A, of the mean", "B, of the variance"), strict=True)
):
    ax.semilogx(
        lengths,
        digits[0, part],
        color="#D55E00",
        marker="o",
        ms=3,
        lw=1,
        label="as printed in the paper",
    )
    ax.semilogx(lengths, digits[1, part], color="#0072B2", marker="o", ms=3, lw=1, label="gpattr")
    ax.set(title=title, xlabel="length of the path, in length-scales", ylim=(-0.5, 16.5))
    ax.spines[["top", "right"]].set_visible(False)
axes[0].set_ylabel("correct digits")
axes[0].legend(frameon=False, loc="lower center")
plt.show()
