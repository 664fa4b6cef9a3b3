"""What a page of fixed width needs: numbers in one piece, and room for wide code and tables."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes

NUMBER = re.compile(r"((?:(?<!\w)[+−-])?\d[\d.,]*e[+−-]?\d+|\d{1,3}(?: \d{3})+(?!\d))")
COLUMNS = 100  # characters of a line of code that fit
STEP, WIDEST = 10, 160
DENSE = 7  # columns from which a table is set in smaller type


def keep_numbers_whole(document: nodes.document) -> None:
    """Put numbers of tables in which a line could break, such as 1e-8, into unbreakable spans."""
    for cell in document.findall(nodes.entry):
        for text in list(cell.findall(nodes.Text)):
            if isinstance(text.parent, nodes.literal) or not NUMBER.search(text):
                continue
            pieces = [
                nodes.inline("", piece, classes=["number"]) if i % 2 else nodes.Text(piece)
                for i, piece in enumerate(NUMBER.split(text))
                if piece
            ]
            text.parent.replace(text, pieces)


def mark_wide_blocks(document: nodes.document) -> None:
    """Give code with longer lines, and tables of many columns, a class with smaller type."""
    for code in document.findall(nodes.literal_block):
        longest = max(map(len, code.astext().splitlines()), default=0)
        if longest > COLUMNS:
            columns = min(-(-longest // STEP) * STEP, WIDEST)
            code["classes"].append(f"columns-{columns}")
    for group in document.findall(nodes.tgroup):
        if group["cols"] >= DENSE:
            group.parent["classes"].append("dense")


def lay_out(app: Any, document: nodes.document, name: str) -> None:
    """Apply both to a page."""
    keep_numbers_whole(document)
    mark_wide_blocks(document)


def setup(app: Any) -> dict[str, Any]:
    """Connect to the pages as they are written."""
    app.connect("doctree-resolved", lay_out)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
