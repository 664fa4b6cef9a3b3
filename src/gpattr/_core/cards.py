"""Objects as small HTML tables, for notebooks."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def card(title: str, lines: Iterable[tuple[str, object]]) -> str:
    """Return a title and lines of names and values; everything is shown as text."""
    body = "".join(
        f"<tr><th style='text-align:left'>{escape(name)}</th><td"
        f" style='text-align:left'>{escape(str(value))}</td></tr>"
        for name, value in lines
    )
    return f"<div><strong>{escape(title)}</strong><table><tbody>{body}</tbody></table></div>"
