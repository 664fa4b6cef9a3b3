"""Sobol indices as text and as HTML, short enough to read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gpattr._core.readable_numbers import readable
from gpattr.explanation.text import SHOWN, Table, as_html, as_lines

if TYPE_CHECKING:
    from gpattr.sobol.indices import SobolIndices


def plain(indices: SobolIndices) -> str:
    """Return indices as lines of text."""
    return as_lines(_heading(indices), _table(indices), _notes(indices))


def html(indices: SobolIndices) -> str:
    """Return indices as an HTML table for notebooks."""
    return as_html(_heading(indices), _table(indices), _notes(indices))


def variance_words(indices: SobolIndices) -> str:
    """Return the total variance, and how much of it is unknown, in words."""
    spread = readable(indices.variance_std, 2)
    share = indices.unknown_share
    unknown = "< 0.1%" if share < 1e-3 else f"{share:.1%}" if share < 0.1 else f"{share:.0%}"
    return f"variance {readable(indices.variance)} ± {spread}, of which {unknown} is not yet known"


def _heading(indices: SobolIndices) -> list[str]:
    P = len(indices)
    names = f"{P} feature{'s' * (P != 1)}"
    inputs = f", {indices.inputs}" if indices.inputs else ""
    error = indices.error.max(initial=0.0)
    spread = np.minimum(indices.first_std, indices.total_std)
    more = ", more than some spreads" if (indices.error > spread).any() else ""
    drawn = len(indices.first_draws)
    return [
        f"Sobol indices of the {indices.quantity}: {names}{inputs}",
        variance_words(indices),
        f"{indices.method}, error about {error:.0e}{more}; spread from {drawn} draws",
    ]


def _table(indices: SobolIndices) -> Table:
    header = ["feature", "first", "± std", "plug-in", "total", "± std", "plug-in"]
    columns = [
        indices.first,
        indices.first_std,
        indices.plug_in_first,
        indices.total,
        indices.total_std,
        indices.plug_in_total,
    ]
    order = np.argsort(-indices.total, kind="stable")[:SHOWN]
    names = indices.feature_names
    return header, [[names[i], *(_share(column[i]) for column in columns)] for i in order]


def _share(value: float) -> str:
    """Return an index with four decimals, "–" for none; one that rounds to zero has no sign."""
    if value != value:
        return "–"
    return f"{value if abs(value) >= 5e-5 else 0.0:.4f}"


def _notes(indices: SobolIndices) -> list[str]:
    hidden = len(indices) - SHOWN
    return [f"… and {hidden} smaller"] if hidden > 0 else []
