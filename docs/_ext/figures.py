"""Gallery figures made without pyplot: the variable ``figure`` of each script."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure
from sphinx_gallery.scrapers import figure_rst


def scrape_figures(
    block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any], **_: Any
) -> str:
    """Save the figure that a block of an example created, once."""
    figure = block_vars["example_globals"].pop("figure", None)
    if not isinstance(figure, Figure):
        return ""
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=150)
    return figure_rst([path], gallery_conf["src_dir"])


def _get_sg_image_scraper() -> Any:
    return scrape_figures
