"""Labels that a picture cannot show: letters missing from all fonts, and texts that are too long.

Matplotlib would draw boxes, or give up its layout, with a warning each; here they are replaced
before the picture is drawn.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter

BOX = "□"
LONGEST = 45  # letters at a tick: longer names would leave no space for the axes


def save_picture(figure: Figure, path: Path) -> bool:
    """Write a figure, with boxes for letters its fonts lack; return whether there are any."""
    families = FontProperties().get_family()
    known = {
        code
        for name in families
        for code in get_font(findfont(FontProperties(family=[name]))).get_charmap()
    } | {ord("\n")}
    box = BOX if ord(BOX) in known else "?"
    lacking = False

    def drawn(text: str) -> str:
        nonlocal lacking
        result = "".join(letter if ord(letter) in known else box for letter in text)
        lacking = lacking or result != text
        return result

    axes: list[Any] = figure.findobj(Axis)
    for axis in axes:
        formatter = axis.get_major_formatter()
        if isinstance(formatter, FuncFormatter):  # called again whenever the figure is drawn
            formatter.func = lambda value, place, write=formatter.func: shortened(
                drawn(write(value, place))
            )
    texts: list[Any] = figure.findobj(Text)
    for text in texts:
        text.set_text(drawn(text.get_text()))
    figure.savefig(path, dpi=150)
    return lacking


def shortened(text: str) -> str:
    """Return a text, without its middle if it is too long: the end may be a value."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 21]}…{text[-20:]}"
