"""Kernels on the pages: the formula in LaTeX, and a picture of k and of functions drawn from it.

The pictures are drawn when the documentation is built, always alike, into docs/reference/api.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure

from gpattr import kernels
from gpattr.plots.style import BLUE, GREY, INK, SERIES

FOLDER = "reference/api/kernels"
POINTS = 241
JITTER = 1e-9  # of the variance, to factorise the covariance of a smooth kernel
BUMP = kernels.SquaredExponential()


@dataclass(frozen=True)
class Entry:
    """A kernel: its formula, and what is drawn: ``shown`` in words, and k(x, x') at x' = ``at``."""

    formula: str
    kernel: Callable[[], kernels.Kernel]
    shown: str
    at: float = 0.0
    start: float = -4.0


ENTRIES = {
    "SquaredExponential": Entry(r"\sigma^2 e^{-r^2/2}", lambda: BUMP, "ℓ = 1"),
    "Matern12": Entry(r"\sigma^2 e^{-r}", kernels.Matern12, "ℓ = 1"),
    "Matern32": Entry(
        r"\sigma^2 \left(1 + \sqrt 3\, r\right) e^{-\sqrt 3\, r}", kernels.Matern32, "ℓ = 1"
    ),
    "Matern52": Entry(
        r"\sigma^2 \left(1 + \sqrt 5\, r + \tfrac{5}{3} r^2\right) e^{-\sqrt 5\, r}",
        kernels.Matern52,
        "ℓ = 1",
    ),
    "Matern": Entry(
        r"\sigma^2\, \frac{2^{1-\nu}}{\Gamma(\nu)}\, s^\nu K_\nu(s), \quad s = \sqrt{2\nu}\, r",
        kernels.Matern,
        "ℓ = 1, ν = 7/2",
    ),
    "RationalQuadratic": Entry(
        r"\sigma^2 \left(1 + \frac{r^2}{2\alpha}\right)^{-\alpha}",
        lambda: kernels.RationalQuadratic(alpha=0.3),
        "ℓ = 1, α = 0.3",
    ),
    "Periodic": Entry(
        r"\sigma^2 \exp\Bigl(-2 \sum_i \sin^2\bigl(\pi (x_i - x_i')/p_i\bigr) / \ell_i^2\Bigr)",
        lambda: kernels.Periodic(period=2.0),
        "ℓ = 1, p = 2",
    ),
    "Cosine": Entry(
        r"\sigma^2 \cos\Bigl(2\pi \sum_i (x_i - x_i')/p_i\Bigr)",
        lambda: kernels.Cosine(period=2.0),
        "p = 2",
    ),
    "Categorical": Entry(
        r"\rho + (1 - \rho) \sum_i e_i e_i', \quad \rho = e^{-1/\ell^2}",
        kernels.Categorical,
        "ℓ = 1",
        at=1.0,
    ),
    "Constant": Entry(r"\sigma^2", kernels.Constant, "σ² = 1"),
    "Linear": Entry(r"\sum_i \sigma_i^2\, x_i x_i'", kernels.Linear, "σ² = 1", at=1.0),
    "Polynomial": Entry(
        r"\Bigl(c + \sum_i \sigma_i^2\, x_i x_i'\Bigr)^{\text{degree}}",
        lambda: kernels.Polynomial(0.2, degree=3),
        "degree 3, σ² = 0.2, c = 1",
        at=1.0,
    ),
    "White": Entry(
        r"\sigma^2 \text{ if } x \text{ and } x' \text{ are the same observation, else } 0",
        kernels.White,
        "σ² = 1",
    ),
    "Sum": Entry(
        r"k_1(x, x') + k_2(x, x') + \dots",
        lambda: kernels.SquaredExponential(2.0) + 0.2 * kernels.Periodic(period=1.0),
        "a smooth plus a periodic one",
    ),
    "Product": Entry(
        r"k_1(x, x')\, k_2(x, x') \cdots",
        lambda: kernels.SquaredExponential(2.0) * kernels.Periodic(period=1.5),
        "a smooth times a periodic one",
    ),
    "Scale": Entry(r"\sigma^2\, k_1(x, x')", lambda: 4.0 * BUMP, "σ² = 4"),
    "Warped": Entry(
        r"k_1\bigl(\varphi(x), \varphi(x')\bigr)",
        lambda: kernels.Warped(
            kernels.SquaredExponential(0.4), np.log, lambda X: (1.0 / X)[:, None, :]
        ),
        "φ = log, ℓ = 0.4",
        at=1.0,
        start=0.05,
    ),
    "Rescaled": Entry(
        r"s(x)\, k_1(x, x')\, s(x')",
        lambda: kernels.Rescaled(BUMP, lambda X: np.exp(X[:, 0] / 3), lambda X: np.exp(X / 3) / 3),
        "s(x) = exp(x/3)",
    ),
}
# Formulas without a picture of their own
FORMULAS = {
    "FullAdditive": r"\sum_n \sigma_n^2\, e_n(z_1, \dots, z_d), \quad z_i = k_i(x_i, x_i')",
    "Select": r"k_1(x_S, x_S') \text{ for the columns } S",
    "Function": r"\text{the function given}",
    "Radial": r"\sigma^2\, g(r)",
}
DISTANCE = r"r^2 = \sum_i \left(\frac{x_i - x_i'}{\ell_i}\right)^2"


def formula(name: str) -> str:
    """Return the formula of a kernel in LaTeX, with the distance r of a radial kernel."""
    text = ENTRIES[name].formula if name in ENTRIES else FORMULAS[name]
    radial = issubclass(getattr(kernels, name), kernels.Radial)
    return f"k(x, x') = {text}" + (rf", \qquad {DISTANCE}" if radial else "")


def picture(entry: Entry) -> Figure:
    """Return k(x, x') at one x', and three functions drawn from the prior."""
    kernel = entry.kernel()
    x = np.linspace(entry.start, 4.0, POINTS)
    X = x[:, None]
    values = kernel(X, np.array([[entry.at]]))[:, 0]
    K = kernel(X, X)
    if isinstance(kernel, kernels.White):  # two arrays are never the same observations
        values = np.where(x == entry.at, kernel.diagonal(X), 0.0)
    spectrum, vectors = np.linalg.eigh(K + JITTER * K.diagonal().max() * np.eye(len(x)))
    normal = np.random.default_rng(3).standard_normal((len(x), 3))
    draws = vectors @ (np.sqrt(np.maximum(spectrum, 0.0))[:, None] * (vectors.T @ normal))

    figure = Figure(figsize=(6.4, 1.9), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    left.plot(x, values, color=BLUE)
    left.set_ylim(min(0.0, values.min()) - 0.06 * np.ptp([0.0, *values]), None)
    left.set_title(f"k(x, {entry.at:g})", **_TITLE)
    points = isinstance(kernel, kernels.White)
    for column, color in zip(draws.T, SERIES, strict=False):
        style = {"marker": ".", "linestyle": "", "markersize": 2} if points else {}
        right.plot(x, column, color=color, linewidth=1.3, **style)
    right.set_title(f"three draws, {entry.shown}", **_TITLE)
    for axes in (left, right):
        axes.axhline(0.0, color=GREY, linewidth=0.5, zorder=0)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8, colors=INK)
        axes.set_xlabel("x", fontsize=8, color=INK, labelpad=0)
    return figure


_TITLE: dict[str, Any] = {"loc": "left", "fontsize": 9, "color": INK}


def draw(app: Any) -> None:
    """Draw all kernels into the folder of generated pages."""
    folder = Path(app.srcdir) / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context({"svg.hashsalt": "gpattr", "svg.fonttype": "path"}):
        for name, entry in ENTRIES.items():
            picture(entry).savefig(folder / f"{name}.svg", metadata={"Date": None})


def describe(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Put the formula and the picture of a kernel below the first line of its page."""
    kernel = name.removeprefix("gpattr.kernels.")
    if what != "class" or (kernel not in ENTRIES and kernel not in FORMULAS):
        return
    added = ["", ".. math::", "", f"   {formula(kernel)}", ""]
    if kernel in ENTRIES:
        alt = f"   :alt: {kernel}: covariance, and three draws ({ENTRIES[kernel].shown})"
        added += [f".. image:: /{FOLDER}/{kernel}.svg", alt, "   :width: 100%", ""]
    end = lines.index("") if "" in lines else len(lines)
    lines[end:end] = added


def catalogue() -> str:
    """Return Markdown with the formula and the picture of every kernel."""
    parts = []
    for name, entry in ENTRIES.items():
        parts.append(
            f"### {{py:obj}}`{name} <gpattr.kernels.{name}>`\n\n"
            f"$$k(x, x') = {entry.formula}$$\n\n"
            f"```{{image}} /{FOLDER}/{name}.svg\n:alt: {name}\n:width: 100%\n```\n"
        )
    return "\n".join(parts)


def setup(app: Any) -> dict[str, Any]:
    """Draw before pages are read."""
    app.connect("builder-inited", draw)
    app.connect("autodoc-process-docstring", describe, priority=200)  # formulas as they are
    return {"parallel_read_safe": True}
