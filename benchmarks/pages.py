"""Markdown of the pages that benchmarks write: paragraphs, tables, numbers, the machine."""

from __future__ import annotations

import platform
import textwrap
from pathlib import Path

import numpy as np


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
