"""The diagram of the package structure, generated from the imports in the source.

``python docs/_ext/architecture.py`` writes docs/pictures/architecture.svg.
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE, PICTURE = ROOT / "src" / "gpattr", ROOT / "docs" / "pictures" / "architecture.svg"
WIDTH, BOX, GAP, LEVEL = 1040, 26, 10, 64
BLUE, INK, LINE, PAPER = "#0072b2", "#1b1f24", "#9db8cc", "#ffffff"


def imported(path: Path) -> set[str]:
    """Return the packages that a file imports, except for type checking."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.parent.name in ("_core", "explainer", "explanation", "sobol"):  # lazily from above
        tree.body = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    packages = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and id(node) not in guarded
            and node.module.split(".")[0] == "gpattr"
        ):
            parts = node.module.split(".")
            packages |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return packages


def graph() -> dict[str, set[str]]:
    """Return {package: the packages it imports}, directly or through private packages."""
    known: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        known.setdefault(path.relative_to(SOURCE).parts[0].removesuffix(".py"), set()).update(
            imported(path)
        )

    def public(package: str, seen: frozenset[str]) -> set[str]:
        direct = (known[package] & known.keys()) - seen
        return {use for use in direct if use[0] != "_"} | {
            u for use in direct if use[0] == "_" for u in public(use, seen | {use})
        }

    return {
        package: public(package, frozenset({package})) - {package}
        for package in known
        if package[0] != "_"
    }


def reduced(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the graph without the edges that follow from others."""

    def reach(package: str) -> set[str]:
        return uses[package] | {far for near in uses[package] for far in reach(near)}

    return {
        package: {
            near for near in direct if not any(near in reach(other) for other in direct - {near})
        }
        for package, direct in uses.items()
    }


def levels(uses: dict[str, set[str]]) -> dict[str, int]:
    """Return the number of levels below each package."""
    height: dict[str, int] = {}

    def of(package: str) -> int:
        if package not in height:
            height[package] = 1 + max(map(of, uses[package]), default=-1)
        return height[package]

    for package in uses:
        of(package)
    return height


def picture() -> str:
    """Return the diagram as SVG."""
    uses = graph()
    height = levels(uses)
    top = max(height.values())
    place: dict[str, tuple[float, float, float]] = {}
    for level in range(top + 1):
        packages = sorted(package for package in uses if height[package] == level)
        widths = [8.2 * len(package) + 20 for package in packages]
        x = (WIDTH - sum(widths) - GAP * 3 * (len(packages) - 1)) / 2
        for package, width in zip(packages, widths, strict=True):
            place[package] = (x, 16 + LEVEL * (top - level), width)
            x += width + GAP * 3
    size = 32 + LEVEL * top + BOX
    font = 'font-family="system-ui, sans-serif" font-size="14"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {size}" {font}>',
        f'<rect width="{WIDTH}" height="{size}" rx="8" fill="{PAPER}"/>',
    ]
    for package, below in sorted(reduced(uses).items()):
        x, y, width = place[package]
        start = round(x + width / 2)
        for other in sorted(below):
            ox, oy, owidth = place[other]
            end = round(ox + owidth / 2)
            ends = f"M{start} {y + BOX} C{start} {y + BOX + 24} {end} {oy - 24} {end} {oy}"
            parts.append(f'<path d="{ends}" fill="none" stroke="{LINE}" stroke-width="1.3"/>')
    for package, (x, y, width) in sorted(place.items()):
        parts.append(
            f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BOX}" rx="5" fill="#eef5fa"'
            f' stroke="{BLUE}"/>'
        )
        parts.append(
            f'<text x="{x + width / 2:.0f}" y="{y + 18}" text-anchor="middle"'
            f' fill="{INK}">{package}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
