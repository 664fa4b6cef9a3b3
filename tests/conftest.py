import os
import shutil
import sys
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, settings

import gpattr
from gpattr.kernels import SquaredExponential
from gpattr.posteriors import ExactPosterior

settings.register_profile(
    "gpattr",
    deadline=None,
    derandomize=True,
    max_examples=60,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("gpattr")

REFERENCE = Path(__file__).parent / "reference"
CHROMIUM = (
    shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
)


def _seed(module, name: str) -> None:
    """Give a module's RNG, where it has one, and PyTorch numbers that belong to a name alone."""
    seed, generator = zlib.crc32(name.encode()), getattr(module, "RNG", None)
    if isinstance(generator, np.random.Generator):
        generator.bit_generator.state = np.random.default_rng(seed).bit_generator.state
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef, request):
    """What a fixture draws does not depend on the tests before it."""
    _seed(request.node.getparent(pytest.Module) and request.module, fixturedef.argname)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_call(item):
    """What a test draws does not depend on the tests before it, nor on the process it runs in."""
    _seed(getattr(item, "module", None), item.nodeid.rpartition("/")[2])


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder with the paper's data, which are no part of the project."""
    folder = os.environ.get("GPATTR_DATA_DIR")
    if not folder:
        pytest.skip(
            "the published data are no part of the project: set GPATTR_DATA_DIR to a folder that"
            " has them"
        )
    return Path(folder)


@pytest.fixture(scope="session")
def wine(data_folder) -> pd.DataFrame:
    """The red wine data of the paper, 1599 × 12."""
    return gpattr.datasets.load_wine_quality("red", data_home=data_folder).frame


@pytest.fixture(scope="session")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(5)
    return pd.DataFrame(rng.normal(size=(12, 3)), columns=["alpha", "beta", "gamma"])


@pytest.fixture(scope="session")
def posterior(frame) -> ExactPosterior:
    """A small model trained on a frame."""
    kernel = SquaredExponential(lengthscale=[0.8, 1.3, 2.0], variance=1.7)
    y = np.sin(frame["alpha"]) + 0.5 * frame["beta"] * frame["gamma"]
    return ExactPosterior(kernel, frame, y, noise=0.01)


@pytest.fixture(scope="session")
def explainer(posterior) -> gpattr.Explainer:
    return gpattr.Explainer(posterior)


@pytest.fixture(scope="session")
def rows() -> np.ndarray:
    rows = np.random.default_rng(8).normal(size=(6, 3))
    rows.flags.writeable = False
    return rows


@pytest.fixture(scope="session")
def explanation(explainer, rows) -> gpattr.Explanation:
    return explainer(rows)


@pytest.fixture(scope="session")
def chromium():
    """Headless Chromium."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as play:
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
        tab.on(
            "request",
            lambda request: (
                complaints.append(request.url) if request.url.startswith("http") else None
            ),
        )
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-ready=yes]", timeout=60_000)
        yield tab
        assert complaints == []
        context.close()

    return open_page


def load_table(name: str) -> dict[str, dict[str, np.ndarray]]:
    """Return a reference table as {case: {name: array}}."""
    table: dict[str, dict[str, np.ndarray]] = {}
    with np.load(REFERENCE / name) as file:
        for key in file.files:
            case, field = key.split("/")
            table.setdefault(case, {})[field] = file[key]
    return table
