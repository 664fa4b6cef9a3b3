"""Docstrings for the pages: literal formulas, escaped bars, own members, links between pages."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes


def prepare(app: Any, what: str, name: str, obj: object, options: Any, lines: list[str]) -> None:
    """Make indented paragraphs literal blocks, except in lists and sections, and escape bars."""
    rules = [i for i, line in enumerate(lines) if line.strip() and set(line.strip()) == {"-"}]
    prose = rules[0] - 1 if rules else len(lines)  # a section is a heading with a rule below
    result: list[str] = []
    for i, line in enumerate(lines):
        indented = line.startswith("    ")
        if i < prose and indented and result and not result[-1].strip():
            above = next((text for text in reversed(result) if text.strip()), "")
            if not above.startswith((" ", "*", "-", ">>>")):
                result += ["::", ""]
        result.append(line if indented or line.startswith(">>>") else _bars(line))
    lines[:] = result


def _bars(line: str) -> str:
    """Escape the bars of a line outside its literals."""
    parts = line.split("``")
    return "``".join(part if k % 2 else part.replace("|", "\\|") for k, part in enumerate(parts))


def skip(app: Any, what: str, name: str, obj: object, skipped: bool, options: Any) -> bool | None:
    """Skip what is inherited from other libraries, and what scikit-learn adds to estimators."""
    function = getattr(obj, "fget", None) or getattr(obj, "__func__", obj)
    home = getattr(getattr(function, "__objclass__", function), "__module__", None) or "gpattr"
    foreign = home.partition(".")[0] != "gpattr" or type(obj).__name__ == "_tuplegetter"
    return True if foreign or re.fullmatch(r"set_\w+_request", name) else None


def link_by_last_name(app: Any, env: Any, node: Any, contnode: nodes.Node) -> nodes.Node | None:
    """Resolve `Name`, or `Class.method`, to the one public object that is called so."""
    target = node.get("reftarget", "")
    if node.get("refdomain") != "py" or not re.match(r"(\w+\.)*[A-Z]\w|\w+_\w", target):
        return None
    domain = env.domains["py"]
    found = [name for name in domain.objects if name.endswith(f".{target}")]
    if len(found) != 1:
        return None
    entry, builder = domain.objects[found[0]], app.builder
    uri = builder.get_relative_uri(node["refdoc"], entry.docname)
    return nodes.reference("", "", contnode, internal=True, refuri=f"{uri}#{entry.node_id}")


def plain_types(
    app: Any, what: str, name: str, obj: object, options: Any, signature: Any, returns: Any
) -> tuple[Any, Any]:
    """Write type aliases in signatures by their names."""
    texts = (signature, returns)
    return tuple(text and re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", text) for text in texts)


def setup(app: Any) -> dict[str, Any]:
    """Connect to autodoc; before napoleon, which has the default priority."""
    app.connect("autodoc-process-docstring", prepare, priority=100)
    app.connect("autodoc-process-signature", plain_types)
    app.connect("autodoc-skip-member", skip)
    app.connect("missing-reference", link_by_last_name)
    return {"parallel_read_safe": True}
