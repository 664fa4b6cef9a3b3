"""What the report says of a model: its size, kernel and noise, and how well it predicts rows it has not seen."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpattr._array import solve_lower_rows, to_numpy
from gpattr.kernels import Radial, Scale
from gpattr.posteriors import AffinePosterior, ExactPosterior, Posterior
from gpattr.tables.held_out import LEVELS, HeldOut

KINDS = {
    "ExactPosterior": "exact Gaussian process",
    "SparsePosterior": "Gaussian process with inducing inputs",
    "WeightSpacePosterior": "Gaussian process of finitely many functions",
    "LaplacePosterior": "Gaussian process classifier",
}


def leave_one_out(posterior: ExactPosterior) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and variance of each training target given all others, (m,) each, from the factor of all.

    With q the diagonal of (K + noise)⁻¹, they are y − α/q and 1/q; hyperparameters, and the mean, stay as learned from all rows.
    """
    L = to_numpy(posterior.factor)
    inverse = solve_lower_rows(L, np.eye(len(L)))  # row i is L⁻¹eᵢ
    q = (inverse**2).sum(axis=1)
    return to_numpy(posterior.y) - to_numpy(posterior.alpha) / q, 1.0 / q


def left_out(posterior: Posterior) -> HeldOut | None:
    """Judge predictions of the training targets, each from all others; None where they are not known."""
    inner: Any = posterior.posterior if isinstance(posterior, AffinePosterior) else posterior
    if not isinstance(inner, ExactPosterior):
        return None
    return HeldOut.of(to_numpy(inner.y), *leave_one_out(inner))


def model_card(posterior: Posterior, held_out: HeldOut | None = None) -> list[tuple[str, str]]:
    """Return what is known of a model, as names and words; ``held_out`` says how well it predicts rows it has not seen."""
    inner: Any = posterior.posterior if isinstance(posterior, AffinePosterior) else posterior
    rows = inner.training_inputs
    name = type(inner).__name__
    card = [("model", f"{KINDS[name]} ({name})" if name in KINDS else name)]
    if rows is not None:
        card.append(("training rows", f"{len(rows):,}"))
    card.append(("features", str(len(getattr(getattr(posterior, "encoder", None), "features", ())) or inner.n_features)))
    kernel = getattr(inner, "kernel", None)
    if kernel is not None:
        card += _kernel(kernel, inner.feature_names or [f"x{i}" for i in range(inner.n_features)])
    if isinstance(inner, ExactPosterior):
        noise = to_numpy(inner.noise)
        level = f"{np.sqrt(noise[0]):.4g}" if np.ptp(noise) == 0 else f"{np.sqrt(noise.min()):.4g} to {np.sqrt(noise.max()):.4g}"
        card.append(("noise, standard deviation", level))
        judged = HeldOut.of(to_numpy(inner.y), *leave_one_out(inner))
        card += _quality("leave-one-out", "calibration, leaving one out", judged)
    elif held_out is not None:
        card += _quality(f"{held_out.rows:,} rows held out", "calibration, rows held out", held_out)
    else:
        card.append(("rows not seen", "how well they are predicted is not known of this model"))
    return card


def _kernel(kernel: Any, names: Any) -> list[tuple[str, str]]:
    if isinstance(kernel, Scale):
        kernel = kernel.kernel
    if not isinstance(kernel, Radial):
        return [("kernel", repr(kernel))]
    scales = np.broadcast_to(np.asarray(kernel.lengthscale, dtype=np.float64), (len(names),))
    order = np.argsort(scales, kind="stable")
    return [
        ("kernel", f"{type(kernel).__name__}, standard deviation {np.sqrt(kernel.variance):.4g}"),
        ("length-scales", ", ".join(f"{names[i]} {scales[i]:.3g}" for i in order)),
    ]


def _quality(name: str, calibration: str, judged: HeldOut) -> list[tuple[str, str]]:
    score = "" if judged.score is None else f"R² {judged.score:.3f}, "
    inside = (f"{share:.0%} of rows in {level:.0%} intervals" for level, share in zip(LEVELS, judged.inside, strict=True))
    return [(name, f"{score}typical error {judged.error:.4g}"), (calibration, ", ".join(inside))]
