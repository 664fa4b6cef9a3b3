"""The widget in JupyterLab: sliders are moved in a browser, and its numbers are Python's."""

import json
import os
import re
import secrets
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from urllib.error import URLError
from urllib.request import urlopen

import numpy as np
import pytest

pytest.importorskip("anywidget")
pytest.importorskip("jupyterlab")

SETUP = """
import numpy as np
import pandas as pd
import gpattr
from gpattr.kernels import Matern52, Periodic, Select, SquaredExponential
from gpattr.posteriors import ExactPosterior

rng = np.random.default_rng(0)
X = pd.DataFrame(rng.normal(size=(60, 3)), columns=["alpha", "beta", "gamma"])
y = np.sin(X["alpha"]) + 0.5 * X["beta"] * X["gamma"]
SCALES = [1.0, 1.5, 2.0]
known = SquaredExponential(SCALES) * Matern52([3.0, 3.0, 3.0]) + Matern52(SCALES, 0.5)
unknown = known + Select(Periodic(period=3.0), [0])
"""
CELLS = [
    SETUP,
    "here = gpattr.Explainer(ExactPosterior(known, X, y, noise=0.01)).widget(X[:5])\nhere",
    "there = gpattr.Explainer(ExactPosterior(unknown, X, y, noise=0.01)).widget(X[:5])\nthere",
    "model = ExactPosterior(known, X, y, noise=0.01)\n"
    "gpattr.Explainer(model, attribution='shapley').widget(X[:5])",
]


def notebook(cells):
    sources = [
        {
            "cell_type": "code",
            "id": f"cell{k}",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": cell,
        }
        for k, cell in enumerate(cells)
    ]
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return {
        "cells": sources,
        "metadata": {"kernelspec": spec},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def jupyterlab(folder):
    """JupyterLab with folders of its own; it is always shut down."""
    work, port, token = folder / "work", free_port(), secrets.token_hex(16)
    own = {
        "JUPYTER_CONFIG_DIR": "config",
        "JUPYTER_DATA_DIR": "data",
        "JUPYTER_RUNTIME_DIR": "runtime",
        "JUPYTERLAB_SETTINGS_DIR": "settings",
        "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
        "IPYTHONDIR": "ipython",
    }
    for name in ("work", *own.values()):
        (folder / name).mkdir()
    quiet = folder / "settings" / "@jupyterlab" / "apputils-extension"
    quiet.mkdir(parents=True)
    settings = {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True}
    (quiet / "notification.jupyterlab-settings").write_text(json.dumps(settings))
    (work / "widget.ipynb").write_text(json.dumps(notebook(CELLS)))
    command = [
        sys.executable,
        "-m",
        "jupyterlab",
        "--no-browser",
        "--allow-root",
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        f"--ServerApp.root_dir={work}",
        f"--IdentityProvider.token={token}",
        "--LabApp.extension_manager=readonly",
    ]
    environment = os.environ | {name: str(folder / place) for name, place in own.items()}
    log = (folder / "log.txt").open("w")
    server = subprocess.Popen(
        command, cwd=work, env=environment, stdout=log, stderr=subprocess.STDOUT
    )
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(300):
            assert server.poll() is None, (folder / "log.txt").read_text()
            try:
                urlopen(f"{address}/api?token={token}", timeout=5).close()
                break
            except (URLError, OSError):
                time.sleep(0.1)
        yield address, token
    finally:
        server.terminate()  # which ends its kernels as well
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
        log.close()


def run_cell(tab, k):
    """Run a cell; keys that come before the notebook listens are lost, and are sent again."""
    cell = tab.locator(".jp-Notebook .jp-CodeCell").nth(k)
    for _ in range(20):
        cell.locator(".cm-content").click()
        tab.keyboard.press("Shift+Enter")
        for _ in range(10):
            if re.search(r"\[[*\d]", cell.locator(".jp-InputPrompt").inner_text()):
                return
            tab.wait_for_timeout(100)
    raise AssertionError(f"cell {k} does not run")


@contextmanager
def opened_notebook(chromium, folder):
    """A notebook whose cells have run, in a browser without any other network."""
    with jupyterlab(folder) as (address, token):
        context = chromium.new_context(viewport={"width": 1400, "height": 1000})
        context.route(
            "**/*",
            lambda route: (
                route.continue_()
                if route.request.url.startswith((address, "blob:", "data:"))
                else route.abort()
            ),
        )
        tab = context.new_page()
        complaints = []
        tab.on("pageerror", lambda error: complaints.append(str(error)))
        tab.goto(f"{address}/lab/tree/widget.ipynb?token={token}")
        tab.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
        tab.wait_for_selector("[data-status=idle]", timeout=60_000)
        for k in range(len(CELLS)):
            run_cell(tab, k)
        tab.wait_for_function(
            "document.querySelectorAll('.gpattr-widget[data-state=ready]').length === 3",
            timeout=60_000,
        )
        yield tab
        assert complaints == []
        context.close()


def models():
    """The explainers of the notebook, made in this process."""
    import gpattr

    space = {}
    exec(SETUP, space)
    posterior = space["ExactPosterior"]

    def of(kernel, **options):
        made = posterior(space[kernel], space["X"], space["y"], noise=0.01)
        return gpattr.Explainer(made, **options)

    return space["X"], [of("known"), of("unknown"), of("known", attribution="shapley")]


def widget(lab, k):
    return lab.locator(".gpattr-widget").nth(k)


def answered(lab, k, before=None):
    """Return what a widget holds, once it is another prediction than before."""
    lab.wait_for_function(
        "([k, before]) => { const root = document.querySelectorAll('.gpattr-widget')[k];"
        " return root.dataset.state === 'ready' && root.dataset.prediction !== before; }",
        arg=[k, before],
    )
    return widget(lab, k).evaluate("root => ({ ...root.answer, shown: { ...root.dataset } })")


def check(explainer, asked, answer):
    ex = explainer(asked)
    spread = explainer.posterior.predict(asked, return_std=True)[1]
    for part, expected in {
        "prediction": ex.predictions[0],
        "base": ex.base_values[0],
        "values": ex.values[0],
        "stds": ex.std[0],
        "std": spread[0],
    }.items():
        np.testing.assert_allclose(answer[part], expected, rtol=1e-9, atol=1e-9, err_msg=part)
    assert float(answer["shown"]["prediction"]) == answer["prediction"]
    assert float(answer["shown"]["std"]) == answer["std"]


def move_sliders(lab, X, explainers, k):
    answer = answered(lab, k)
    check(explainers[k], X[:1], answer)
    for value in (0.5, -1.25):
        before = widget(lab, k).get_attribute("data-prediction")
        widget(lab, k).locator("input[type=range][aria-label=beta]").evaluate(
            "(slider, value) => { slider.value = value;"
            " slider.dispatchEvent(new Event('input')); }",
            value,
        )
        asked = X[:1].assign(beta=value)
        check(explainers[k], asked, answered(lab, k, before))


def use_python(lab, X, explainers):
    """Python sees what is shown, and sets it."""
    code = (
        "here.values = {'alpha': 0.25, 'gamma': -1.0}\n"
        "there.row = 3\n"
        "assert here.values['alpha'] == 0.25 and set(here.answer) >= {'prediction', 'stds'}\n"
        "print('seen', here.answer['prediction'])"
    )
    held = widget(lab, 0).get_attribute("data-prediction")
    last = lab.locator(".jp-Notebook .jp-CodeCell").count() - 1
    lab.locator(".jp-Notebook .jp-CodeCell .cm-content").nth(last).click()
    lab.keyboard.insert_text(code)
    run_cell(lab, last)
    shown = lab.wait_for_selector(".jp-OutputArea-output >> text=seen").inner_text()
    assert float(shown.split()[1]) == float(held)
    here = X[:1].assign(alpha=0.25, beta=-1.25, gamma=-1.0)
    check(explainers[0], here, answered(lab, 0, held))
    there = widget(lab, 1)
    lab.wait_for_function(
        "expected => document.querySelectorAll('.gpattr-widget')[1].answer.prediction.toFixed(8)"
        " === expected",
        arg=f"{explainers[1](X[3:4]).predictions[0]:.8f}",
    )
    check(explainers[1], X[3:4], answered(lab, 1))
    assert there.locator("select").first.input_value() == "3"


def remove_a_widget(lab):
    count = lab.locator(".gpattr-widget").count()
    lab.click(".jp-Notebook .jp-CodeCell >> nth=2 >> .cm-content")
    lab.keyboard.press("Escape")
    lab.keyboard.press("d")
    lab.keyboard.press("d")
    lab.wait_for_function(
        "count => document.querySelectorAll('.gpattr-widget').length === count", arg=count - 1
    )


@pytest.mark.slow
def test_sliders_in_jupyterlab(chromium, tmp_path):
    X, explainers = models()
    with opened_notebook(chromium, tmp_path) as lab:
        for k in range(len(explainers)):
            move_sliders(lab, X, explainers, k)
        use_python(lab, X, explainers)
        remove_a_widget(lab)
