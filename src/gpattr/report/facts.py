"""Facts about a model for the report: size, kernel, noise and held-out performance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np

from gpattr._core.array import solve_lower_rows, to_numpy
from gpattr.kernels import Radial, Scale
from gpattr.posteriors import (
    ExactPosterior,
    MultiOutputPosterior,
    Posterior,
)
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.posteriors.wrapper import WrapperPosterior
from gpattr.tables.held_out import LEVELS, HeldOut
from gpattr.tables.held_out_classes import HeldOutClasses

KINDS = {
    "ExactPosterior": "exact Gaussian process",
    "SparsePosterior": "Gaussian process with inducing inputs",
    "WeightSpacePosterior": "weight-space Gaussian process",
    "LaplacePosterior": "Gaussian process classifier",
}

MOST = 12  # length-scales that are listed


def leave_one_out(posterior: ExactPosterior) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean and variance of each training target given all others, (m,) each.

    With q the diagonal of (K + noise)⁻¹, they are y − α/q and 1/q; hyperparameters and the mean
    stay as learned from all rows.
    """
    L = to_numpy(posterior.factor)
    inverse = solve_lower_rows(L, np.eye(len(L)))  # row i is L⁻¹eᵢ
    q = (inverse**2).sum(axis=1)
    return to_numpy(posterior.y) - to_numpy(posterior.alpha) / q, 1.0 / q


def innermost(posterior: Posterior) -> Any:
    """Return the posterior behind encoders and scalers."""
    while isinstance(posterior, WrapperPosterior):
        posterior = posterior.posterior
    return posterior


def left_out(posterior: Posterior) -> HeldOut | None:
    """Judge leave-one-out predictions of the training targets; None if not available."""
    inner = innermost(posterior)
    if not isinstance(inner, ExactPosterior):
        return None
    return HeldOut.of(to_numpy(inner.y), *leave_one_out(inner))


def model_card(
    posterior: Posterior,
    held_out: HeldOut | HeldOutClasses | None = None,
    outputs: Iterable[str] = (),
) -> list[tuple[str, str]]:
    """Return facts about a model as pairs of texts, including its held-out performance.

    ``outputs`` are the names of several classes or outputs, of which ``posterior`` may be the
    first: each has its own kernel, and none is shown.
    """
    several, outer = list(outputs), cast(Any, posterior)
    if isinstance(posterior, MultiOutputPosterior):
        several, outer = list(posterior.outputs), next(iter(posterior.outputs.values()))
    inner = innermost(outer)
    rows = inner.training_inputs
    name = type(inner).__name__
    card = [("model", f"{KINDS[name]} ({name})" if name in KINDS else name)]
    if several:
        card.append(("classes" if name == "LaplacePosterior" else "outputs", ", ".join(several)))
    if rows is not None:
        card.append(("training rows", f"{len(rows):,}"))
    card.append(
        (
            "features",
            str(inner.n_features if posterior.encoder is None else posterior.n_features),
        )
    )
    if isinstance(inner, FunctionSpacePosterior) and not several:
        card += _kernel(
            inner.kernel, inner.feature_names or [f"x{i}" for i in range(inner.n_features)]
        )
    if isinstance(inner, ExactPosterior) and not several:
        noise = to_numpy(inner.noise)
        least, most = np.sqrt(noise.min()), np.sqrt(noise.max())
        card.append(
            (
                "noise, standard deviation",
                _short(least) if least == most else f"{_short(least)} to {_short(most)}",
            )
        )
        judged = HeldOut.of(to_numpy(inner.y), *leave_one_out(inner))
        card += _quality("leave-one-out", "calibration, leave-one-out", judged)
    elif isinstance(held_out, HeldOutClasses):
        card += _accuracy(held_out)
    elif held_out is not None:
        card += _quality(f"{held_out.rows:,} held-out rows", "calibration, held-out rows", held_out)
    else:
        card.append(("held-out rows", "performance not available for this model"))
    return card


def calibration(
    held_out: HeldOut | HeldOutClasses | None,
) -> list[tuple[float, float, int]] | None:
    """Return the bins of a classifier: mean probability, share of correct rows, number of rows."""
    if not isinstance(held_out, HeldOutClasses):
        return None
    return [bin_ for bin_ in held_out.calibration if bin_[2]]


def _kernel(kernel: Any, names: Any) -> list[tuple[str, str]]:
    if isinstance(kernel, Scale):
        kernel = kernel.kernel
    if not isinstance(kernel, Radial):
        return [("kernel", repr(kernel))]
    scales = np.broadcast_to(np.asarray(kernel.lengthscale, dtype=np.float64), (len(names),))
    order = np.argsort(scales, kind="stable")
    rest = [f"{len(order) - MOST} longer ones"] if len(order) > MOST else []
    return [
        (
            "kernel",
            (
                f"{type(kernel).__name__}, standard deviation"
                f" {_short(float(np.sqrt(kernel.variance)))}"
            ),
        ),
        (
            "length-scales",
            ", ".join(
                [*(f"{names[i]} {_short(float(scales[i]), 3)}" for i in order[:MOST]), *rest]
            ),
        ),
    ]


def _quality(name: str, calibration: str, judged: HeldOut) -> list[tuple[str, str]]:
    score = "" if judged.score is None else f"R² {judged.score:.3f}, "
    inside = (
        f"{share:.0%} of rows inside {level:.0%} intervals"
        for level, share in zip(LEVELS, judged.inside, strict=True)
    )
    return [
        (name, f"{score}typical error {_short(judged.error)}"),
        (calibration, ", ".join(inside)),
    ]


def _accuracy(judged: HeldOutClasses) -> list[tuple[str, str]]:
    gain = "" if judged.accuracy > judged.most_frequent else "; the model is no better than that"
    return [
        (
            f"{judged.rows:,} held-out rows",
            f"{judged.accuracy:.1%} of the classes are correct, log loss {judged.log_loss:.3f}",
        ),
        (
            "for comparison",
            f"always predicting the most frequent class: {judged.most_frequent:.1%}{gain}",
        ),
    ]


def _short(value: float, digits: int = 4) -> str:
    return f"{float(f'{value:.{digits}g}'):,.10g}"
