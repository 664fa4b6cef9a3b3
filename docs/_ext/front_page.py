"""The two pictures of the README and the landing page, from what ``gpattr demo`` writes.

    python docs/_ext/front_page.py

A waterfall of one patient, and the report as Chromium shows it (``pip install playwright``)."""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image
from playwright.sync_api import sync_playwright
from rich.console import Console

from gpattr import demo, plots
from gpattr.explanation.explanation import Explanation

PICTURES = Path(__file__).parents[1] / "pictures"
WIDTH, HEIGHT = 960, 840  # of both pictures, which stand side by side
SCALE = 2  # pixels of the picture for each of the page: sharp on fine screens


def save(picture: bytes, name: str) -> None:
    """Write a picture with 256 colours, which flat drawings need no more than."""
    image = Image.open(io.BytesIO(picture)).convert("RGB").quantize(256, dither=Image.Dither.NONE)
    image.save(PICTURES / name, optimize=True)


def draw_waterfall(ex: Explanation) -> None:
    """Draw the patient whose prediction is farthest from that of the average patient."""
    figure = Figure(figsize=(WIDTH / 135, HEIGHT / 135), layout="constrained")
    plots.waterfall(ex[int(demo.farthest(ex)[0])], ax=figure.subplots(), max_display=8)
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=135 * SCALE)
    save(buffer.getvalue(), "demo_waterfall.png")


def photograph_report(page: Path) -> None:
    """Show the sliders of the report after one has moved, and the explanation below them."""
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        view = browser.new_page(
            viewport={"width": WIDTH, "height": HEIGHT}, device_scale_factor=SCALE
        )
        view.goto(page.as_uri())
        view.get_by_label("body mass index, value").fill("26")
        view.keyboard.press("Tab")
        view.evaluate("document.activeElement.blur()")
        heading = view.get_by_text("What if?", exact=True)
        heading.evaluate("top => scrollTo(0, top.getBoundingClientRect().top + scrollY - 16)")
        save(view.screenshot(), "demo_report.png")
        browser.close()


def main() -> None:
    """Run the demonstration and make both pictures."""
    with tempfile.TemporaryDirectory() as folder:
        ex = demo.run(Path(folder), Console(quiet=True), quiet=True)
        draw_waterfall(ex)
        photograph_report(Path(folder) / "report.html")


if __name__ == "__main__":
    main()
