"""Docstrings for the pages: indented formulas are literal blocks, and bars are escaped."""

from __future__ import annotations

import re
from typing import Any


def prepare(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Make indented paragraphs literal blocks, except in lists and sections, and escape bars."""
    numpydoc = any(line.strip() and set(line.strip()) == {"-"} for line in lines)
    result: list[str] = []
    for line in lines:
        indented = line.startswith("    ")
        if not numpydoc and indented and result and not result[-1].strip():
            above = next((text for text in reversed(result) if text.strip()), "")
            if not above.startswith((" ", "*", "-", ">>>")):
                result += ["::", ""]
        result.append(line if indented else _bars(line))
    lines[:] = result


def _bars(line: str) -> str:
    """Escape the bars of a line outside its literals."""
    parts = line.split("``")
    return "``".join(part if k % 2 else part.replace("|", "\\|") for k, part in enumerate(parts))


def skip(app: Any, what: str, name: str, obj: object, skipped: bool, options: Any) -> bool | None:
    """Skip the methods that scikit-learn adds to every estimator."""
    return True if re.fullmatch(r"set_\w+_request", name) else None


def setup(app: Any) -> dict[str, Any]:
    """Connect to autodoc; before napoleon, which has the default priority."""
    app.connect("autodoc-process-docstring", prepare, priority=100)
    app.connect("autodoc-skip-member", skip)
    return {"parallel_read_safe": True}
