"""Names of attributions, as tables and pictures write them."""

from __future__ import annotations

INTEGRATED_GRADIENTS = "integrated gradients"
SHAPLEY_VALUES = "Shapley values"


def remark(attribution: str) -> str:
    """Return the name where it has to be mentioned: "" for integrated gradients, the default."""
    return "" if attribution == INTEGRATED_GRADIENTS else attribution
