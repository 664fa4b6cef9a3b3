"""Interactions as text and as HTML: the strongest pairs of different features."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from gpattr.explanation import text
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.pairs import PAIR, all_pairs

if TYPE_CHECKING:
    from gpattr.explanation.interactions import InteractionExplanation


def plain(ex: InteractionExplanation) -> str:
    """Return the interactions as lines of text."""
    return text.as_lines(_heading(ex), text.table(_between(ex)), _notes(ex))


def html(ex: InteractionExplanation) -> str:
    """Return the interactions as an HTML table for notebooks."""
    return text.as_html(_heading(ex), text.table(_between(ex)), _notes(ex))


def _between(ex: InteractionExplanation) -> Explanation:
    """Return the pairs of different features: main effects would hide the interactions."""
    kept = [k for k, (i, j) in enumerate(ex.pairs) if i != j]
    labels = ex.by_pair.coordinates[PAIR]
    return replace(
        ex.by_pair,
        distribution=ex.distribution.select(slice(None), np.array(kept, dtype=int)),
        coordinates={PAIR: tuple(labels[k] for k in kept)},
    )


def _heading(ex: InteractionExplanation) -> list[str]:
    n, d = ex.shape[:2]
    what = "" if ex.quantity == "prediction" else f" in the {ex.quantity}"
    size = f"{n:,} row{'s' * (n != 1)} × {d} feature{'s' * (d != 1)}"
    chosen = "" if ex.complete else f", {len(ex.pairs)} of {len(all_pairs(d))} pairs"
    return [f"Interactions{what}: {size}{chosen}", *text.heading(ex.by_pair)[1:]]


def _notes(ex: InteractionExplanation) -> list[str]:
    hidden = sum(i != j for i, j in ex.pairs) - text.SHOWN
    return [f"… and {hidden} smaller"] if hidden > 0 else []
