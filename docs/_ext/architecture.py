"""The picture of the architecture: rooms of the library, each above all that it imports, from the
source itself.

python docs/_ext/architecture.py    writes docs/pictures/architecture.svg anew
"""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE, PICTURE = ROOT / "src" / "gpattr", ROOT / "docs" / "pictures" / "architecture.svg"
WIDTH, BOX, GAP, LEVEL = 1040, 26, 10, 64
BLUE, INK, LINE, PAPER = "#0072b2", "#1b1f24", "#9db8cc", "#ffffff"


def imported(path: Path) -> set[str]:
    """Return the rooms that a file imports when it is loaded or, unless it is private, used; type
    checkers do not count.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if path.parent.name in ("_core", "explanation"):  # what ex.plot imports lies above it
        tree.body = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    guarded = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    rooms = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and id(node) not in guarded
            and node.module.split(".")[0] == "gpattr"
        ):
            parts = node.module.split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
    return rooms


def graph() -> dict[str, set[str]]:
    """Return {room: the rooms it imports}; what it imports through private helpers, which have no
    place here, counts too.
    """
    known: dict[str, set[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        known.setdefault(path.relative_to(SOURCE).parts[0].removesuffix(".py"), set()).update(
            imported(path)
        )

    def public(room: str, seen: frozenset[str]) -> set[str]:
        direct = (known[room] & known.keys()) - seen
        return {use for use in direct if use[0] != "_"} | {
            u for use in direct if use[0] == "_" for u in public(use, seen | {use})
        }

    return {room: public(room, frozenset({room})) - {room} for room in known if room[0] != "_"}


def reduced(uses: dict[str, set[str]]) -> dict[str, set[str]]:
    """Return the same graph without the edges that follow from others."""

    def reach(room: str) -> set[str]:
        return uses[room] | {far for near in uses[room] for far in reach(near)}

    return {
        room: {
            near for near in direct if not any(near in reach(other) for other in direct - {near})
        }
        for room, direct in uses.items()
    }


def levels(uses: dict[str, set[str]]) -> dict[str, int]:
    """Return how many floors lie below each room."""
    height: dict[str, int] = {}

    def of(room: str) -> int:
        if room not in height:
            height[room] = 1 + max(map(of, uses[room]), default=-1)
        return height[room]

    for room in uses:
        of(room)
    return height


def picture() -> str:
    """Return the SVG."""
    uses = graph()
    height = levels(uses)
    top = max(height.values())
    place: dict[str, tuple[float, float, float]] = {}
    for floor in range(top + 1):
        rooms = sorted(room for room in uses if height[room] == floor)
        widths = [8.2 * len(room) + 20 for room in rooms]
        x = (WIDTH - sum(widths) - GAP * 3 * (len(rooms) - 1)) / 2
        for room, width in zip(rooms, widths, strict=True):
            place[room] = (x, 16 + LEVEL * (top - floor), width)
            x += width + GAP * 3
    size = 32 + LEVEL * top + BOX
    font = 'font-family="system-ui, sans-serif" font-size="14"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {size}" {font}>',
        f'<rect width="{WIDTH}" height="{size}" rx="8" fill="{PAPER}"/>',
    ]
    for room, below in sorted(reduced(uses).items()):
        x, y, width = place[room]
        start = round(x + width / 2)
        for other in sorted(below):
            ox, oy, owidth = place[other]
            end = round(ox + owidth / 2)
            ends = f"M{start} {y + BOX} C{start} {y + BOX + 24} {end} {oy - 24} {end} {oy}"
            parts.append(f'<path d="{ends}" fill="none" stroke="{LINE}" stroke-width="1.3"/>')
    for room, (x, y, width) in sorted(place.items()):
        parts.append(
            f'<rect x="{x:.0f}" y="{y}" width="{width:.0f}" height="{BOX}" rx="5" fill="#eef5fa"'
            f' stroke="{BLUE}"/>'
        )
        parts.append(
            f'<text x="{x + width / 2:.0f}" y="{y + 18}" text-anchor="middle"'
            f' fill="{INK}">{room}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
