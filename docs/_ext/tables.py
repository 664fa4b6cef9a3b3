"""Reference tables generated from the library: commands, capabilities of models, file formats."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import typer

import gpattr
from gpattr.cli import app
from gpattr.exceptions import GpattrError
from gpattr.kernels import SquaredExponential
from gpattr.tables import Columns, TableModel


def command_reference() -> str:
    """Return every command with its arguments and options."""
    group: Any = typer.main.get_command(app)
    parts = []
    for name, command in group.commands.items():
        parts.append(
            f"## `gpattr {name}`\n\n{command.help}\n\n| option | default | meaning |\n|---|---|---|"
        )
        for option in command.params:
            if option.name == "help":
                continue
            names = (
                ", ".join(f"`{text}`" for text in option.opts)
                if option.param_type_name == "option"
                else f"`{option.name.upper()}`"
            )
            default = (
                ""
                if option.default in (None, False) or callable(option.default)
                else f"`{option.default}`"
            )
            parts.append(f"| {names} | {default} | {option.help or ''} |")
        parts.append("")
    return "\n".join(parts)


def _data() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(24, 2))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=24)


def _models() -> Iterator[tuple[str, Any]]:
    """Yield all estimators, each trained on a few rows, and a mixture."""
    X, y = _data()
    classes = np.where(y > 0, "yes", "no")
    kernel = SquaredExponential([1.0, 2.0])
    exact = gpattr.posteriors.ExactPosterior(kernel, X, y, noise=0.1)
    yield "GPRegressor", gpattr.GPRegressor().fit(X, y)
    yield "SparseGPRegressor", gpattr.SparseGPRegressor(8, random_state=0).fit(X, y)
    yield "BayesianLinearRegressor", gpattr.BayesianLinearRegressor().fit(X, y)
    yield "RandomFeatureGPRegressor", gpattr.RandomFeatureGPRegressor(20, random_state=0).fit(X, y)
    yield "HilbertGPRegressor", gpattr.HilbertGPRegressor(domain=(-4.0, 4.0)).fit(X, y)
    yield "GPClassifier", gpattr.GPClassifier().fit(X, classes)
    yield "MultiOutputGPRegressor", gpattr.MultiOutputGPRegressor().fit(X, {"one": y, "two": 2 * y})
    yield "MixturePosterior", gpattr.posteriors.MixturePosterior([exact, exact])


def _questions() -> dict[str, Callable[[Any, Any], Any]]:
    X, y = _data()

    def first(explainer: Any) -> Any:
        return (
            explainer[explainer.posterior.output_names[0]]
            if hasattr(explainer.posterior, "output_names")
            else explainer
        )

    return {
        "mean and covariance": lambda model, explainer: np.linalg.norm(explainer(X[:2]).cov),
        "between rows": lambda model, explainer: first(explainer).joint(X[:2]),
        "importance": lambda model, explainer: first(explainer).importance(X[:3], n_samples=20),
        "training rows": lambda model, explainer: first(explainer).training_contributions(X[0], 0),
        "probabilities": lambda model, explainer: gpattr.Explainer(
            model, output="probability", n_draws=20
        )(X[:1]),
        "streams": lambda model, explainer: model.partial_fit(X, y),
        "files": lambda model, explainer: _saved(model),
    }


def _saved(model: Any) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.json")
        return type(model).load(Path(folder) / "model.json")


def model_table() -> str:
    """Return what can be asked of each model; every cell was tried."""
    questions = _questions()
    lines = [
        "| model | " + " | ".join(questions) + " | computed by |",
        "|---" * (len(questions) + 2) + "|",
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few rows are no data to learn from
        for name, model in _models():
            explainer = gpattr.Explainer(model)
            cells = []
            for ask in questions.values():
                try:
                    ask(model, explainer)
                    cells.append("✓")
                except (GpattrError, AttributeError):
                    cells.append("–")
            ex = explainer(_data()[0][:1])
            method = next(iter(ex.outputs.values())).method if hasattr(ex, "outputs") else ex.method
            lines.append(f"| `{name}` | " + " | ".join(cells) + f" | {method} |")
    return "\n".join(lines)


def file_formats() -> str:
    """Return the fields of every file the library writes, read from files it wrote just now."""
    X, y = _data()
    frame_columns = Columns(("a", "b"), {}, "y")
    import pandas as pd

    frame = pd.DataFrame(X, columns=["a", "b"])
    model = gpattr.GPRegressor().fit(frame, y)
    ex = gpattr.Explainer(model)(frame[:3])
    several = gpattr.Explainer(gpattr.MultiOutputGPRegressor().fit(X, {"one": y, "two": y}))(
        X[:2], uncertainty="std"
    )
    matrices = np.ones((2, 2, 2))
    interactions = gpattr.InteractionExplanation.from_matrices(
        matrices, matrices, feature_names=("a", "b"), data=X[:2], predictions=y[:2]
    )
    samples = {
        "An explanation: `ex.save`, `Explanation.load`": ex,
        "Explanations of several outputs": several,
        "Interactions: `ex.save`, `InteractionExplanation.load`": interactions,
        "Sobol indices: `indices.save`, `SobolIndices.load`": gpattr.sobol_indices(
            model, n_draws=100
        ),
        "A model: `model.save`, `GPRegressor.load`": model,
        "A model of a table: `gpattr fit`": TableModel.fit(frame, y, frame_columns),
    }
    parts = []
    with tempfile.TemporaryDirectory() as folder:
        for title, thing in samples.items():
            path = Path(folder) / "file.json"
            thing.save(path)
            parts.append(f"## {title}\n\n| field | type | example |\n|---|---|---|")
            parts += [
                f"| `{name}` | {kind} | {example} |"
                for name, kind, example in _fields(json.loads(path.read_text()))
            ]
            parts.append("")
    return "\n".join(parts)


def _fields(value: Any, name: str = "") -> Iterator[tuple[str, str, str]]:
    """Go through the fields of a JSON value; an array with named dimensions is one."""
    if isinstance(value, dict) and set(value) == {"dims", "shape", "data"}:
        yield name, "array " + " × ".join(value["dims"]), f"shape {value['shape']}"
    elif isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _fields(inner, f"{name}.{key}" if name else key)
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        yield from _fields(value[0], f"{name}[]")
    else:
        kind = {
            dict: "object",
            list: "list",
            str: "text",
            int: "whole number",
            float: "number",
            bool: "true or false",
        }.get(type(value), "null")
        text = json.dumps(value, ensure_ascii=False)
        yield name, kind, f"`{text if len(text) < 40 else text[:36] + '…'}`"
