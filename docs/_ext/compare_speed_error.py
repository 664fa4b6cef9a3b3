"""The picture of speed against error, drawn from the tables that docs/compare.md shows.

``python docs/_ext/compare_speed_error.py`` writes docs/pictures/compare_speed_error.png; run it
after benchmarks/compare.py or benchmarks/compare_shapley.py has written new results.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter

from gpattr.plots.style import BLUE, GREEN, GREY, INK, ORANGE, PURPLE

DOCS = Path(__file__).resolve().parents[1]
PICTURE = DOCS / "pictures" / "compare_speed_error.png"
COLOURS = {"gpattr": BLUE, "Captum": ORANGE, "shap": GREEN, "shapiq": PURPLE, "GP-SHAP": GREY}
MARKERS = {"gpattr": "o", "Captum": "s", "shap": "^", "shapiq": "D", "GP-SHAP": "v"}
SHORTER = {
    "IntegratedGradients, ": "",
    " (default)": "",
    " (our code)": "",
    ", one row per call": ", row by row",
    "means and covariance": "with cov",
    "means and std": "with std",
    "ProductKernelExplainer": "ProductKernel",
    "ExactComputer": "Exact",
    ", l1_reg=False": "",
    ", budget ": ", ",
    " coalitions": "",
}
ROUNDING, TOP = 1e-13, 1e-3  # errors up to the first are rounding
RISING = {"rotation": 60, "rotation_mode": "anchor"}


@dataclass(frozen=True)
class Point:
    """One tool in one setting."""

    tool: str
    milliseconds: float
    error: float
    uncertainty: bool

    @property
    def package(self) -> str:
        """The first word of its name."""
        return self.tool.replace(",", "").split()[0]

    @property
    def short_name(self) -> str:
        """Its name in the picture."""
        name = self.tool
        for long, short in SHORTER.items():
            name = name.replace(long, short)
        return name


def read_table(page: str, heading: str) -> list[dict[str, str]]:
    """Return the rows of the table below a heading of a page."""
    _, found, after = page.partition(f"\n### {heading}\n")
    lines = [line for line in after.partition("\n### ")[0].splitlines() if line.startswith("|")]
    if not found or not lines:
        raise ValueError(f"no table below {heading!r}")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(cells[0], row, strict=True)) for row in cells[2:]]


def integrated_gradients() -> list[Point]:
    """Return the tools of docs/compare_results.md that compute integrated gradients."""
    page = (DOCS / "compare_results.md").read_text(encoding="utf-8")
    about = {row["tool"]: row for row in read_table(page, "What each tool computes")}
    time = {row["tool"]: float(row["ms"]) for row in read_table(page, "Time per explained row")}
    return [
        Point(
            name,
            time[name],
            float(row["error"]),
            about[name]["uncertainty of the attributions"].startswith("exact"),
        )
        for row in read_table(page, "Errors")
        if about[name := row["tool"]]["computes"] == "integrated gradients"
    ]


def shapley_values() -> list[Point]:
    """Return the tools of docs/compare_shapley_results.md, for ten features and one baseline."""
    page = (DOCS / "compare_shapley_results.md").read_text(encoding="utf-8")
    return [
        Point(
            row["tool"],
            float(row["ms per row"]),
            float(row["error of values"]),
            row["error of std"] != "none",
        )
        for row in read_table(page, "10 features, one baseline")
    ]


def picture() -> Figure:
    """Return both quantities side by side, each tool against the exact values of its own."""
    figure = Figure(figsize=(9.0, 5.2), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.0, 1.8))
    scatter(left, integrated_gradients(), "Integrated gradients (8 features)")
    scatter(right, shapley_values(), "Shapley values (10 features)")
    left.set_ylabel("largest error / largest attribution", color=INK)
    left.set_ylim(1e-16, 2.0)
    left.annotate(
        "faster, more accurate", (0.08, 0.66), (0.36, 0.84), xycoords="axes fraction", fontsize=8,
        color=INK, ha="center", arrowprops={"arrowstyle": "->", "color": INK},
    )  # fmt: skip
    tools = [
        Line2D([], [], color=COLOURS[name], marker=MARKERS[name], linestyle="", label=name)
        for name in COLOURS
    ]
    fills = [
        Line2D([], [], **fill(INK, full), marker="o", linestyle="", label=text)
        for full, text in ((True, "with uncertainty"), (False, "values only"))
    ]
    figure.legend(
        handles=[*tools, *fills], loc="outside lower center", ncols=7, frameon=False, fontsize=9,
        handletextpad=0.1, columnspacing=1.4,
    )  # fmt: skip
    return figure


def scatter(axes: Axes, points: list[Point], title: str) -> None:
    """Draw one marker for each tool and setting, filled where it has an uncertainty."""
    for point in points:
        style = fill(COLOURS[point.package], point.uncertainty)
        axes.plot(point.milliseconds, point.error, MARKERS[point.package], markersize=7, **style)
        write_label(axes, point, points)
    axes.set_title(title, loc="left", fontsize=10, color=INK)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.axhspan(1e-30, ROUNDING, color="0.95", zorder=0)
    axes.text(0.99, 0.01, "rounding", transform=axes.transAxes, ha="right", fontsize=8, color="0.4")
    times = [point.milliseconds for point in points]
    axes.set_xlim(min(times) / 2.5, max(times) * 6)
    axes.set_xlabel("time per row, milliseconds", color=INK)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(color="0.9", linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def write_label(axes: Axes, point: Point, points: list[Point]) -> None:
    """Label a point, rising from it, or beside it at the top, where there is no room to rise.

    The digits of rounding errors mean nothing, so labels of the exact tools start at one height.
    """
    x, y, colour = point.milliseconds, point.error, COLOURS[point.package]
    near = [other for other in points if 1 < other.milliseconds / x < 1.3 and other.error > TOP]
    if y < ROUNDING:
        axes.plot([x, x], [y, 1.5 * ROUNDING], color=colour, linewidth=0.6, zorder=1)
        y, place = 1.5 * ROUNDING, {"xytext": (2, 2), **RISING}
    elif y < TOP:
        place = {"xytext": (2, 7), **RISING}
    elif near:
        place = {"xytext": (-8, 0), "ha": "right", "va": "center"}
    else:
        place = {"xytext": (8, 0), "ha": "left", "va": "center"}
    text = axes.annotate(
        point.short_name, (x, y), **place, textcoords="offset points", fontsize=8, color=colour
    )
    text.set_in_layout(False)  # or the layout would shrink the axes for it


def fill(colour: str, full: bool) -> dict[str, object]:
    """Return the style of a marker that is filled or hollow."""
    return {"color": colour, "markerfacecolor": colour if full else "white", "markeredgewidth": 1.5}


if __name__ == "__main__":
    picture().savefig(PICTURE, dpi=200)
