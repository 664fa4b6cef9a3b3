"""The directive ``generated``: what a function of the library returns, as Markdown, so that no
table can be stale.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class Generated(SphinxDirective):
    """``generated:: module.function`` puts the Markdown that the function returns in its place."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].rpartition(".")
        text = getattr(import_module(module), name)()
        return self.parse_text_to_nodes(text, allow_section_headings=True)


def setup(app: Any) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("generated", Generated)
    return {"parallel_read_safe": True}
