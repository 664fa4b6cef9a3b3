"""Facts about a model for the report: size, kernel, noise and held-out performance."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import numpy as np
from scipy.special import ndtr

from gpattr._core.array import solve_lower_rows, to_numpy
from gpattr.kernels import Constant, Radial, Scale, Sum
from gpattr.posteriors import (
    ExactPosterior,
    MultiOutputPosterior,
    Posterior,
)
from gpattr.posteriors.function_space import FunctionSpacePosterior
from gpattr.posteriors.wrapper import WrapperPosterior
from gpattr.tables.held_out import LEVELS, HeldOut, HeldOutClasses

CLASSIFIER = "Gaussian process classifier"
KINDS = {
    "ExactPosterior": "exact Gaussian process",
    "SparsePosterior": "Gaussian process with inducing inputs",
    "WeightSpacePosterior": "weight-space Gaussian process",
    "ExpectationPropagationPosterior": CLASSIFIER,
    "LaplacePosterior": CLASSIFIER,
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
    """Judge leave-one-out predictions of the training targets; None if not available.

    The weights of a mixture are those without the target: wₖ/p(y | others, model k).
    """
    models = [(weight, innermost(part)) for weight, part in posterior.components]
    if not all(isinstance(model, ExactPosterior) for _, model in models):
        return None
    y = to_numpy(models[0][1].y)
    parts = np.array([leave_one_out(model) for _, model in models])  # (K, 2, m)
    mean, std = parts[:, 0], np.sqrt(parts[:, 1])
    logs = np.log([weight for weight, _ in models])[:, None]
    logs = logs + 0.5 * ((y - mean) / std) ** 2 + np.log(std)
    weights = np.exp(logs - logs.max(axis=0))
    weights /= weights.sum(axis=0)
    below = (weights * ndtr((y - mean) / std)).sum(axis=0)
    return HeldOut.of_positions(y, (weights * mean).sum(axis=0), below)


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
    models = outer.components
    inner = innermost(max(models, key=lambda part: part[0])[1])
    rows = inner.training_inputs
    name = type(inner).__name__
    kind = f"{KINDS[name]} ({name})" if name in KINDS else name
    card = [("model", kind if len(models) == 1 else f"{kind}, a mixture of {len(models)}")]
    if len(models) > 1:
        card.append(("hyperparameters", "integrated over; below are those of the heaviest model"))
    if several:
        card.append(("classes" if KINDS.get(name) == CLASSIFIER else "outputs", ", ".join(several)))
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
    if isinstance(held_out, HeldOutClasses):
        card += _accuracy(held_out)
    elif held_out is not None:
        card += _quality(f"{held_out.rows:,} held-out rows", "calibration, held-out rows", held_out)
    elif isinstance(inner, ExactPosterior) and not several:
        judged = left_out(outer)
        assert judged is not None
        card += _quality("leave-one-out", "calibration, leave-one-out", judged)
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
    if isinstance(kernel, Sum) and isinstance(kernel.kernels[-1], Constant):
        kernel = kernel.kernels[0] if len(kernel.kernels) == 2 else kernel
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
        *((f"{name}, same rows", f"{share:.1%}") for name, share in judged.peers),
    ]


def _short(value: float, digits: int = 4) -> str:
    return f"{float(f'{value:.{digits}g}'):,.10g}"
