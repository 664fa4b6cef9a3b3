"""A check of every page of the built site, without the network, on a screen and on a phone.

    python docs/_ext/check_site.py site

All links and anchors exist, formulas are rendered, nothing is wider than the window, no table is
clipped, no code leaves its column, no number is broken across lines, nothing uses the network, and
nothing is printed to the console. The search finds words from a disk, and the switch between
versions is hidden where there is one."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote

from playwright.sync_api import Page, TimeoutError, sync_playwright

WINDOWS = (("light", 1300), ("dark", 420))
WIDE = 1000  # from this width on tables and code fit; on a phone they may scroll in their own box

# What leaves its box, and numbers whose digits are on two lines.
LAYOUT = r"""wide => {
  const found = [], text = node => node.textContent.trim().replace(/\s+/g, " ").slice(0, 60);
  const scrolls = node => ["auto", "scroll"].includes(getComputedStyle(node).overflowX);
  for (const table of document.querySelectorAll("article table")) {
    const box = table.closest(".table-wrapper") ?? table.parentElement;
    if (table.offsetWidth > box.clientWidth + 1 && (wide || !scrolls(box)))
      found.push(`clipped table: ${text(table)}`);
  }
  for (const code of document.querySelectorAll("article pre"))
    if (code.scrollWidth > code.clientWidth + 1 && (wide || !scrolls(code)))
      found.push(`code past its column: ${text(code)}`);
  const number = /(?:±\s?|(?<!\w)[+−-])?\d[\d.,]*(?:e[+−-]?\d+)?(?:[ \u00a0]\d{3}(?!\d))*/g;
  for (const cell of document.querySelectorAll("article td, article th")) {
    const walker = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode())
      for (const match of node.data.matchAll(number)) {
        const range = document.createRange();
        range.setStart(node, match.index);
        range.setEnd(node, match.index + match[0].length);
        const lines = new Set([...range.getClientRects()].filter(r => r.width).map(r => r.top));
        if (lines.size > 1) found.push(`broken number: ${match[0]} in ${text(cell)}`);
      }
  }
  return found;
}"""


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
    found += page.evaluate(LAYOUT, width >= WIDE)
    wide = page.evaluate("document.documentElement.scrollWidth")
    return found + ([f"{wide} px wide"] if wide > width else [])


def search_problems(page: Page, site: Path) -> list[str]:
    """Return what is wrong with the search of a site on a disk, and with its list of versions."""
    page.goto((site / "search.html").as_uri() + "?q=shapley")
    try:
        page.wait_for_selector("#search-results li a", timeout=10_000)
    except TimeoutError:
        return ["search.html: nothing found for a word that is on many pages"]
    wrong, switch = [], page.locator(".versions")
    for n in (1, 2):
        versions = [{"name": f"0.{i}", "folder": f"0.{i}"} for i in range(n)]
        switch.evaluate("(box, versions) => showVersions(box, versions)", versions)
        if switch.is_visible() != (n > 1):
            wrong.append(f"search.html: the switch between {n} versions is wrong")
    return wrong


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
            wrong += search_problems(context.new_page(), site)
            context.close()
        browser.close()
    print("\n".join([*wrong, f"{len(pages)} pages, {len(wrong)} problems"]))
    raise SystemExit(bool(wrong))


if __name__ == "__main__":
    main()
