"""A real browser for the page."""

import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@pytest.fixture(scope="session")
def chromium():
    """Headless Chromium."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        running = play.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield running
        running.close()


@pytest.fixture
def opened(chromium):
    """A function that opens a page without the network; what it complains of must be nothing."""

    @contextmanager
    def open_page(path, **options):
        context = chromium.new_context(offline=True, **options)
        tab = context.new_page()
        complaints = []
        tab.on("console", lambda message: complaints.append(message.text))
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.on("request", lambda request: complaints.append(request.url) if request.url.startswith("http") else None)
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-ready=yes]", timeout=60_000)
        yield tab
        assert complaints == []
        context.close()

    return open_page
