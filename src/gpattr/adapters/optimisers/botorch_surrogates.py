"""BoTorch models of optimisers, some of which compare codes of categories.

Columns of codes are replaced by columns that have something in between: one for each label
(`Hamming`), or a factor of the covariance between labels (`Index`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from gpattr.adapters.adapt import adapt
from gpattr.adapters.foreign import beside, on_host
from gpattr.adapters.kernels import Hamming, Index, columns_of_codes, hamming_as_lines
from gpattr.adapters.optimisers.search_spaces import (
    Codes,
    ColumnSource,
    Probes,
    Surrogate,
    by_columns,
)
from gpattr.adapters.pytorch.botorch_models import in_units, outcome_units, untransformed
from gpattr.adapters.pytorch.gpytorch_models import copy_of, in_double, noise_of
from gpattr.adapters.pytorch.kernels import called, mean_of
from gpattr.adapters.pytorch.predictions import exact_moments
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Constant, Kernel, Linear, Select
from gpattr.means import Constant as ConstantMean
from gpattr.means import Linear as LinearMean
from gpattr.means import Mean, Zero
from gpattr.posteriors import ExactPosterior, Posterior


def of_botorch(names: Sequence[str], model: Any, columns: Callable[[Any], np.ndarray]) -> Surrogate:
    """Return a BoTorch model; ``columns`` turns a frame into the rows that its posterior takes."""
    bare = copy_of(model)
    device = next(bare.parameters()).device
    transform = getattr(bare, "input_transform", None)
    if transform is not None:
        del bare.input_transform  # training rows in evaluation mode are what the kernel sees

    def seen(frame: Any) -> np.ndarray:
        rows = torch.tensor(np.array(columns(frame), dtype=np.float64), device=device)
        with torch.no_grad():
            return on_host(rows if transform is None else transform(rows))

    def of_codes(frame: Any) -> tuple[np.ndarray, np.ndarray]:
        return untransformed(bare, torch.tensor(seen(frame), device=device), exact_moments)

    kernel = _kernel_of_codes(bare)
    if kernel is None:
        inner = adapt(bare)
        located = by_columns(in_double(inner.posterior, model))
        return Surrogate(tuple(names), seen, lambda frame: inner.predict(seen(frame)), located)

    def laid_out(probes: Probes, codes: Codes) -> tuple[Posterior, list[ColumnSource]]:
        layout = CodesLayout(probes, codes)
        own = layout.translated(kernel, range(probes.width))
        return in_double(_exact(bare, own, layout), model), layout.sources

    return Surrogate(tuple(names), seen, of_codes, laid_out)


@dataclass
class CodesLayout:
    """The columns of a kernel some of whose columns are codes, which it only compares."""

    probes: Probes
    codes: Codes
    sources: list[ColumnSource] = field(default_factory=list)
    makers: list[Callable[[np.ndarray], np.ndarray]] = field(default_factory=list)
    known: dict[Any, int] = field(default_factory=dict)

    def rows(self, X: np.ndarray) -> np.ndarray:
        """Return rows that the model sees, (n, D), as rows of these columns."""
        return np.column_stack([make(X) for make in self.makers])

    def translated(self, part: Kernel, seen: Sequence[int]) -> Kernel:
        """Return the kernel of a surrogate's columns as a kernel of these columns."""
        if isinstance(part, Select):
            return self.translated(part.kernel, [seen[i] for i in part.features])
        if part.pointwise:
            return part.map_parts(lambda inner: self.translated(inner, seen))
        if isinstance(part, Constant):
            return part
        if isinstance(part, Index):
            codes, known = self.probes.values(seen[0]), len(part.covariance)
            if not (codes.min() >= 0 and codes.max() < known):
                name = self.probes.owner(seen[0])
                raise UnsupportedModelError(
                    f"model: it knows {known} tasks, and the parameter {name!r} has"
                    f" {len(codes)}; tasks that are not in the data are not supported"
                )
            factor = part.factor(codes)
            return Select(Linear(), self._made(seen[0], factor.T, id(part)))
        if isinstance(part, Hamming):
            widths = np.broadcast_to(part.lengthscale, (len(seen),)).tolist()
            # Between two labels the function is then between its values at both; with a squared
            # exponential of these columns it would be unknown there.
            return hamming_as_lines(
                [(self.hot(j), width) for j, width in zip(seen, widths, strict=True)]
            )
        return Select(part, [self._seen(j) for j in seen])

    def hot(self, j: int) -> list[int]:
        """Return the places of columns of 0 and 1, one for each label of a column of codes."""
        return self._made(j, np.eye(len(self.probes.values(j))), "hot")

    def _seen(self, j: int) -> int:
        """Return the place of a column that is taken as it is."""
        if (j, None) not in self.known:
            self._add((j, None), self.probes.source(j, self.codes), lambda X: X[:, j])
        return self.known[j, None]

    def _made(self, j: int, made: np.ndarray, key: Any) -> list[int]:
        """Return the places of columns, (columns, labels), that stand for a column of codes."""
        name, codes = self.probes.owner(j), self.probes.values(j)

        def label(X: np.ndarray) -> np.ndarray:
            return np.abs(X[:, [j]] - codes).argmin(axis=1)

        places = []
        for k, values in enumerate(made):
            if (j, key, k) not in self.known:
                source = self.codes.place(name, values)
                self._add((j, key, k), source, lambda X, values=values: values[label(X)])
            places.append(self.known[j, key, k])
        return places

    def _add(
        self, key: Any, source: ColumnSource, make: Callable[[np.ndarray], np.ndarray]
    ) -> None:
        self.known[key] = len(self.sources)
        self.sources.append(source)
        self.makers.append(make)


def _kernel_of_codes(model: Any) -> Kernel | None:
    """Return the kernel of a model that compares codes of categories; None for other models."""
    if not hasattr(model, "covar_module"):
        return None
    d = model.train_inputs[0].shape[-1]
    try:
        kernel = called(model.covar_module, d)
    except UnsupportedModelError:
        return None
    one = model.train_targets.ndim == 1
    return kernel if one and columns_of_codes(kernel, range(d)) else None


def _exact(model: Any, kernel: Kernel, layout: CodesLayout) -> Posterior:
    """Return the posterior of a `SingleTaskGP` or `MultiTaskGP` of the columns of a layout."""
    X, y = map(on_host, (model.train_inputs[0], model.train_targets))
    mean = _mean(model, layout)
    inner = ExactPosterior(
        kernel,
        beside(layout.rows(X), model.train_targets),
        beside(y, model.train_targets),
        noise=noise_of(model, None),
        mean=mean,
    )
    return in_units(inner, outcome_units(model, 1), 0)


def _mean(model: Any, layout: CodesLayout) -> Mean:
    """Return a constant prior mean, or one constant for each task: linear in columns of 0 and 1."""
    module, d = model.mean_module, layout.probes.width
    bases = [mean_of(base, d) for base in getattr(module, "base_means", [module])]
    if not all(isinstance(base, (ConstantMean, Zero)) for base in bases):
        raise UnsupportedModelError(
            f"mean_module: a {type(module).__name__} of columns with categories is not supported"
        )
    if len(bases) == 1:
        return bases[0]
    places = layout.hot(int(model._task_feature) % d)
    weights = np.zeros(len(layout.sources))
    weights[places] = [float(base(np.zeros((1, d)))[0]) for base in bases]
    return LinearMean(weights, 0.0)
