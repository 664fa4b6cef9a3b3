"""Models of other libraries: versions, devices and column names, and notes about them.

Hyperparameters are a few numbers and are read on the host. Training rows and targets stay on the
GPU that a model is on, where its posterior is then computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.optional import installed_version, version_numbers
from gpattr.exceptions import GpattrError, UnsupportedModelError
from gpattr.posteriors import MultiOutputPosterior, Posterior

FLOAT32 = "model in float32, computed in float64"


def with_note(posterior: Posterior, note: str) -> Posterior:
    """Return a copy of a posterior, which may be the user's own, with a note to be printed."""
    if isinstance(posterior, MultiOutputPosterior):
        outputs = {name: with_note(output, note) for name, output in posterior.outputs.items()}
        return posterior.with_outputs(outputs)
    result = copy(posterior)
    object.__setattr__(result, "note", f"{posterior.note}; {note}".removeprefix("; "))
    return result


def side_by_side(answers: Iterable[tuple[Any, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the means and the variances that several models predict, (n, outputs) each."""
    pairs = [tuple(np.reshape(part, (len(part), -1)) for part in answer) for answer in answers]
    mean, var = (np.concatenate(parts, axis=1) for parts in zip(*pairs, strict=True))
    return mean, var


def one_or_several(posteriors: Sequence[Posterior]) -> Posterior:
    """Return the posterior of one output, or of several."""
    return posteriors[0] if len(posteriors) == 1 else MultiOutputPosterior(posteriors)


def with_columns(rows: np.ndarray, model: Any) -> Any:
    """Return rows as a frame with the model's ``feature_names_in_``, if it has any."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return rows
    import pandas as pd

    return pd.DataFrame(rows, columns=list(names))


def on_host(tensor: Any) -> np.ndarray:
    """Return the values of a tensor as a NumPy array."""
    return tensor.detach().cpu().numpy()


def beside(array: np.ndarray, tensor: Any) -> Array:
    """Return the array where a model's tensor is: itself on the host, a tensor on a GPU."""
    import torch

    return array if tensor.device.type == "cpu" else torch.tensor(array, device=tensor.device)


@contextmanager
def one_device(name: str) -> Iterator[None]:
    """Refuse a model whose own code mixes devices.

    Some models of BoTorch leave tensors behind when they are moved, and then fail by themselves.
    """
    try:
        yield
    except RuntimeError as error:  # PyTorch has no class of its own for it
        if "on the same device" not in str(error):
            raise
        raise UnsupportedModelError(
            f"model: parts of this {name} are on different devices, where its own predictions fail"
            " too; build it on one device, or explain model.cpu()"
        ) from error


@contextmanager
def reading(package: str, tested: str) -> Iterator[None]:
    """Raise `UnsupportedModelError` for a version of a package whose models cannot be read.

    Some are read from attributes that are not public. ``tested`` is the version, such as "0.15",
    that adapters were tested with. A newer one is tried, as models are compared with their own
    predictions; missing parts are named.
    """
    installed = installed_version(package)
    works = f"version {tested} works, {installed or 'an unknown one'} is installed"
    if installed and version_numbers(installed) < version_numbers(tested):
        raise UnsupportedModelError(f"model: this version of {package} is too old; {works}")
    try:
        yield
    except GpattrError:
        raise
    except (AttributeError, ImportError, KeyError) as error:
        if installed and _newer(installed, tested):
            raise UnsupportedModelError(
                f"model: this version of {package} is too new, and its models could not be read"
                f" ({error}); {works}"
            ) from error
        raise


def _newer(installed: str, tested: str) -> bool:
    """Return whether a version is newer than the release, of as many numbers, that was tested."""
    known = version_numbers(tested)
    return version_numbers(installed)[: len(known)] > known
