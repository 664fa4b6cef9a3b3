"""A check of every page of the built site, without the network, on a screen and on a phone.

    python docs/_ext/check_site.py site

All links and anchors exist, formulas are rendered, nothing is wider than the window, nothing uses
the network, and nothing is printed to the console."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

from playwright.sync_api import Page, sync_playwright

WINDOWS = (("light", 1280), ("dark", 390))


def broken_links(site: Path) -> list[str]:
    """Return links to pages, files and anchors that do not exist."""
    texts = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html")}
    anchors = {path: set(re.findall(r'\bid="([^"]+)"', text)) for path, text in texts.items()}
    broken = []
    for path, text in texts.items():
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            if re.match(r"[a-z]+:", link) or link.startswith("//"):
                continue
            name, _, anchor = unquote(link).partition("#")
            target = (path.parent / name.partition("?")[0]).resolve() if name else path.resolve()
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (
                anchor and target in anchors and anchor not in anchors[target]
            ):
                broken.append(f"{path.relative_to(site)}: {link}")
    return broken


def problems(page: Page, path: Path, width: int) -> list[str]:
    """Return the problems of a page in a window of this width."""
    found: list[str] = []
    page.on("console", lambda message: found.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: found.append(f"error: {error}"))
    page.on(
        "request",
        lambda request: (
            found.append(f"requests {request.url}") if request.url.startswith("http") else None
        ),
    )
    page.goto(path.as_uri())
    formulas = page.locator(".math").count()
    if formulas:
        page.wait_for_function(
            "() => document.querySelectorAll('mjx-container').length >="
            " document.querySelectorAll('.math').length"
        )
    wide = page.evaluate("document.documentElement.scrollWidth")
    return found + ([f"{wide} px wide"] if wide > width else [])


def main() -> None:
    """Check the site; exit with 1 if there are problems."""
    site = Path(sys.argv[1]).resolve()
    wrong = broken_links(site)
    pages = [
        path
        for path in sorted(site.rglob("*.html"))
        if path.name not in ("genindex.html", "search.html", "py-modindex.html")
    ]
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for scheme, width in WINDOWS:
            context = browser.new_context(
                offline=True, viewport={"width": width, "height": 900}, color_scheme=scheme
            )
            for path in pages:
                page = context.new_page()
                wrong += [
                    f"{path.relative_to(site)}, {width} px: {what}"
                    for what in problems(page, path, width)
                ]
                page.close()
            context.close()
        browser.close()
    print("\n".join([*wrong, f"{len(pages)} pages, {len(wrong)} problems"]))
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
