"""The directive ``generated``: Markdown returned by a function, so that no table is outdated."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Generated(SphinxDirective):
    """``generated:: module.function`` inserts the Markdown that the function returns."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        text = getattr(import_module(module), name)()
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Any) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True}
