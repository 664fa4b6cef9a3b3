"""The table of kernels in the documentation is the one the registry gives."""

from pathlib import Path

from gpattr.closed_forms.support import support_table

DOCS = Path(__file__).parents[1] / "docs"


def test_table_of_kernels_is_generated():
    text = (DOCS / "kernels.md").read_text(encoding="utf-8")
    shown = text.partition("support_table() -->\n")[2].partition("\n<!-- end -->")[0]
    assert shown == support_table()
