"""The widget itself, on anywidget: it runs in Jupyter, VS Code, Colab and marimo.

Its script and style come from the report's sliders, with a few lines of its own.
"""

from __future__ import annotations

import re
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from gpattr._core.validation import check_count
from gpattr.exceptions import GpattrError
from gpattr.report.document import SHARED_SCRIPTS, parts_of

if TYPE_CHECKING:
    from gpattr.widget.make import Answers


def widget_script() -> str:
    """Return the module that a notebook loads."""
    return parts_of("js", SHARED_SCRIPTS) + "\n" + _own("widget.js")


def widget_style() -> str:
    """Return styles that apply inside of the widget only.

    Notebooks choose their colours themselves, and a cell may be narrower than the window.
    """
    light, dark = re.findall(r":root \{([^}]*)\}", parts_of("css", ["colors"]))[:2]
    shared = parts_of("css", ["shared"]).replace("@media (max-width", "@container (max-width")
    return (
        f".gpattr {{{light}}}\n.gpattr[data-scheme=dark] {{{dark}}}\n"
        f".gpattr {{\n{shared}\n}}\n{_own('widget.css')}"
    )


def _own(name: str) -> str:
    return (files("gpattr.widget") / name).read_text(encoding="utf-8")


class WhatIfWidget(anywidget.AnyWidget):
    """Sliders for the values of a row, with its prediction and its explanation.

    ``row`` is the position of the row to start from and ``values`` {column: value} the present
    setting of all controls; both can be set, ``values`` also in part. ``answer`` has the numbers
    that are shown, in full precision, once they are shown: ``prediction``, ``std``, ``base``,
    ``values`` and ``stds`` in the order of the features. ``table`` is the row as explainers take
    it.
    """

    _esm = widget_script()
    _css = widget_style()
    facts = traitlets.Dict().tag(sync=True)
    arrays = traitlets.Bytes().tag(sync=True)
    row = traitlets.Int(0).tag(sync=True)
    values = traitlets.Dict().tag(sync=True)
    answer = traitlets.Dict().tag(sync=True)

    def __init__(self, answers: Answers, facts: dict[str, Any], arrays: bytes) -> None:
        self._answers = answers
        super().__init__(facts=facts, arrays=arrays, values=answers.columns.start(0))
        self.on_msg(self._asked)

    @property
    def table(self) -> Any:
        """The row with the present values, as the explainer takes it."""
        return self._answers.columns.table(self.values)

    @traitlets.validate("row")
    def _check_row(self, proposal: Any) -> int:
        n = len(self._answers.columns.rows)
        return check_count("row", proposal["value"], least=0, most=n - 1)

    @traitlets.observe("row")
    def _start(self, change: Any) -> None:
        self.values = self._answers.columns.start(change["new"])

    @traitlets.validate("values")
    def _check_values(self, proposal: Any) -> dict[str, Any]:
        return {**self.values, **self._answers.columns.check(proposal["value"])}

    def _asked(self, _: Any, content: Any, __: Any) -> None:
        """Answer a view that cannot compute the row itself."""
        if not isinstance(content, dict) or content.get("kind") != "ask":
            return
        reply = {"kind": "answer", "view": content.get("view"), "id": content.get("id")}
        try:
            values = {**self.values, **self._answers.columns.check(content.get("values"))}
            self.send({**reply, "answer": self._answers.answer(values)})
        except GpattrError as error:
            self.send({**reply, "error": str(error)})
