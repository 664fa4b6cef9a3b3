"""The script and the style of the widget: those of the report's sliders, and a few of its own."""

from __future__ import annotations

import re
from importlib.resources import files

from gpattr.report.document import SHARED_SCRIPTS, parts_of


def widget_script() -> str:
    """Return the module that a notebook loads."""
    return parts_of("js", SHARED_SCRIPTS) + "\n" + _own("widget.js")


def widget_style() -> str:
    """Return styles that apply inside of the widget only.

    Notebooks choose their colours themselves, and a cell may be narrower than the window.
    """
    light, dark = re.findall(r":root \{([^}]*)\}", parts_of("css", ["colors"]))[:2]
    shared = parts_of("css", ["shared"]).replace("@media (max-width", "@container (max-width")
    return (
        f".gpattr {{{light}}}\n.gpattr[data-scheme=dark] {{{dark}}}\n"
        f".gpattr {{\n{shared}\n}}\n{_own('widget.css')}"
    )


def _own(name: str) -> str:
    return (files("gpattr.widget") / name).read_text(encoding="utf-8")
