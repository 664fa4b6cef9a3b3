"""Markdown of the pages that benchmarks write: paragraphs, tables, numbers, the machine."""

from __future__ import annotations

import argparse
import logging
import os
import platform
import textwrap
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import numpy as np
from timing import one_thread


def write_page(compare: Callable[[int], str], description: str, rounds: int) -> None:
    """The command line of a comparison: ``compare`` makes its page from the number of rounds."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=rounds, help="how often every tool is timed")
    parser.add_argument("--write", type=Path, help="a file to write the Markdown to")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # other libraries' advice
    logging.disable(logging.WARNING)
    one_thread()
    page = compare(options.rounds)
    print(page)
    if options.write:
        options.write.write_text(page + "\n", encoding="utf-8")


def machine(packages: str, loads: tuple[float, float] | None = None) -> str:
    """Return the machine and the versions of packages, and its load at start and end."""
    versions = ", ".join(f"{name} {version(name)}" for name in packages.split())
    shared = (
        f", shared with others (load average {loads[0]:.1f} at the start, {loads[1]:.1f} at the"
        " end)"
        if loads
        else ""
    )
    return paragraph(
        f"Machine: {processor()}, {os.cpu_count()} cores{shared}; Python"
        f" {platform.python_version()}, {versions}."
    )


def paragraph(text: str) -> str:
    """Return a paragraph of Markdown, wrapped at 100 columns."""
    words = " ".join(text.split())
    return "\n".join(textwrap.wrap(words, 100, break_long_words=False, break_on_hyphens=False))


def table(head: list[str], rows: list[list[str]], right: bool = True) -> str:
    """A Markdown table, its first column left, the others right or left."""
    rule = ["---"] + ["---:" if right else "---"] * (len(head) - 1)
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [head, rule, *rows])


def processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def digits(value: float) -> str:
    """Return a number with two significant digits, without an exponent."""
    return np.format_float_positional(float(f"{value:.1e}"), trim="-")


def power(value: float) -> str:
    """Return an error with one significant digit."""
    return f"{value:.0e}" if value else "0"
