"""The picture of throughput against workers, drawn from the results of benchmarks/tables.py.

``python docs/_ext/throughput.py`` writes docs/pictures/throughput.png.
"""

from __future__ import annotations

import json
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from gpattr.plots.style import BLUE, GREY, INK, ReadableTicks

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "benchmarks" / "tables.json"
PICTURE = ROOT / "docs" / "pictures" / "throughput.png"


def picture() -> Figure:
    """Return the rows explained in a second by one worker, two workers, and so on."""
    about = json.loads(RESULTS.read_text(encoding="utf-8"))
    cases = [
        case
        for case in about["cases"]
        if case["engine"] == "dask" and not case.get("killed") and "uncertainty" not in case
    ]
    workers = [case["workers"] for case in cases]
    speed = [case["rows_per_second"] for case in cases]
    figure = Figure(figsize=(5.0, 3.2), layout="constrained")
    axes = figure.add_subplot()
    ideal = [speed[0] / workers[0] * k for k in workers]
    axes.plot(workers, ideal, "--", color=GREY, linewidth=1.0)
    axes.annotate("in proportion", (workers[-1], ideal[-1]), (0, -26), ha="right", **_TEXT)
    axes.plot(workers, speed, "o-", color=BLUE)
    for k, rate in zip(workers, speed, strict=True):
        axes.annotate(f"{rate / speed[0]:.2f} ×", (k, rate), (0, 7), ha="center", **_TEXT)
    axes.set_xlabel(f"workers of one thread ({about['cores']} cores)", color=INK)
    axes.set_ylabel("rows per second", color=INK)
    axes.set_title(f"{about['rows']:,} rows × 10, 2000 training points", loc="left", fontsize=10)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_formatter(ReadableTicks())
    axes.set_xlim(0.8 * workers[0], workers[-1] + 0.2)
    axes.set_ylim(0.0, 1.15 * max(*ideal, *speed))
    axes.spines[["top", "right"]].set_visible(False)
    return figure


_TEXT = {"textcoords": "offset points", "color": INK, "fontsize": 9}

if __name__ == "__main__":
    picture().savefig(PICTURE, dpi=120)
