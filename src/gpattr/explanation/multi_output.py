"""MultiOutputExplanation: one Explanation for each output of a model, outputs last."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpattr._core.array import FloatArray
from gpattr._core.optional import optional
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import Names
from gpattr.distributions import Distribution
from gpattr.exceptions import InvalidIndexError, InvalidInputError, SeveralOutputsError
from gpattr.explanation import joining, storage
from gpattr.explanation.explanation import Explanation
from gpattr.explanation.result import Forwarded, JointResult, RowNames, StoredResult, same

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

    from gpattr.plots.accessor import Plots

SHARED = (
    "data",
    "baselines",
    "baseline_weights",
    "feature_names",
    "row_names",
    "baseline_name",
    "attribution",
    "labels",
    "baseline_labels",
    "axes",
    "coordinates",
)


@dataclass(frozen=True, eq=False, repr=False)
class MultiOutputExplanation(JointResult, StoredResult):
    """Attributions of n predictions of P outputs to d features.

    ``outputs`` are explanations by the name of the output; ``ex["price"]`` is one of them, with all
    its methods, and ``ex[rows]`` or ``ex[rows, features]`` selects from all. ``values``, ``var``
    and ``std`` are (n, d, P), ``cov`` is (n, d, d, P), ``predictions``, ``base_values``, ``error``
    and ``delta`` are (n, P); other axes than ("feature",) stand in the place of d. Covariances
    between outputs come from `Explainer.across_outputs`.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.MultiOutputGPRegressor().fit(X, np.column_stack([X[:, 0], X[:, 1] ** 2]))
    >>> ex = gpattr.Explainer(model, baseline="zeros")([[1.0, 1.0]])
    >>> ex.output_names, ex["y1"].values.round(2)
    (('y0', 'y1'), array([[0., 1.]]))
    """

    FORMATS = ("gpattr.MultiOutputExplanation", "gpattr.Explanation")

    outputs: Mapping[str, Explanation]

    feature_names = Forwarded[Names]("_first.feature_names", "The names of the features.")
    row_names = Forwarded[RowNames]("_first.row_names", "The labels of the rows.")
    data = Forwarded[FloatArray]("_first.data", "The rows explained, (n, d).")
    baselines = Forwarded[FloatArray](
        "_first.baselines", "Where the paths start, (n, d), or (k, d) where averaged over a set."
    )
    baseline_name = Forwarded[str]("_first.baseline_name", "What the baseline is.")
    attribution = Forwarded[str](
        "_first.attribution", "What the attributions are, such as integrated gradients."
    )
    axes = Forwarded[Names]("_first.axes", "The names of the dimensions between rows and outputs.")

    def __post_init__(self) -> None:
        if not isinstance(self.outputs, Mapping) or not self.outputs:
            raise InvalidInputError("outputs: expected explanations by name, {name: explanation}")
        for name, ex in self.outputs.items():
            if not isinstance(name, str) or not isinstance(ex, Explanation):
                raise InvalidInputError(
                    f"outputs: expected an Explanation by its name, got a {type(ex).__name__} for"
                    f" {name!r}"
                )
            if not _belong_together(ex, self._first):
                raise InvalidInputError(
                    f"outputs: expected explanations of the same rows, got another in {name!r}"
                )
        self._set("outputs", dict(self.outputs))

    @property
    def _first(self) -> Explanation:
        return next(iter(self.outputs.values()))

    @property
    def output_names(self) -> Names:
        """The names of the outputs."""
        return tuple(self.outputs)

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of rows, the sizes of the axes and the number of outputs, (n, d, P)."""
        return (*self._first.shape, len(self.outputs))

    @property
    def cov(self) -> FloatArray | None:
        """The covariances between features, (n, d, d, P)."""
        return self._stack(lambda ex: ex.cov)

    @property
    def predictions(self) -> FloatArray:
        """F(x), (n, P)."""
        return self._stack(lambda ex: ex.predictions)

    @property
    def base_values(self) -> FloatArray:
        """F(b), (n, P)."""
        return self._stack(lambda ex: ex.base_values)

    @property
    def error(self) -> FloatArray:
        """A bound on the error of the evaluation, (n, P)."""
        return self._stack(lambda ex: ex.error)

    @property
    def cov_error(self) -> FloatArray | None:
        """A bound on the error of each covariance, (n, P)."""
        return self._stack(lambda ex: ex.cov_error)

    @property
    def delta(self) -> FloatArray:
        """The completeness gap Σ values − (F(x) − F(b)), (n, P)."""
        return self._stack(lambda ex: ex.delta)

    def share_between(self) -> FloatArray:
        """Return the share of each variance from between the models of a mixture, (n, d, P)."""
        return self._asked(lambda known: known.shares_between())

    def prob_greater(self, i: str | int, j: str | int) -> FloatArray:
        """Return P(attribution of i > attribution of j) in each row for each output, (n, P)."""
        return self._stack(lambda ex: ex.prob_greater(i, j))

    def rank_probabilities(
        self, n_samples: int = 4000, random_state: RandomLike = 0, absolute: bool = True
    ) -> FloatArray:
        """Return P(feature has rank r), (n, d, d, P), as `Explanation.rank_probabilities`."""
        return self._stack(lambda ex: ex.rank_probabilities(n_samples, random_state, absolute))

    def group(self, groups: Mapping[str, Iterable[str | int]]) -> MultiOutputExplanation:
        """Return the explanation with each group of features added into one, for every output."""
        return self._each(lambda ex: ex.group(groups))

    @staticmethod
    def concatenate(parts: Iterable[MultiOutputExplanation]) -> MultiOutputExplanation:
        """Return explanations by one explainer, such as `Explainer.batches` yields, as one."""
        return MultiOutputExplanation(joining.concatenate_outputs(parts))

    def __getitem__(self, key: Any) -> Any:
        """Return one output by its name, or select rows, or ``[rows, features]``, of all."""
        if isinstance(key, str):
            if key not in self.outputs:
                raise InvalidIndexError(
                    f"output: expected one of {list(self.outputs)}, got {key!r}"
                )
            return self.outputs[key]
        if isinstance(key, tuple) and key and isinstance(key[0], str):
            raise InvalidIndexError(
                f"rows: expected positions, got {key[0]!r}; an output comes first, by itself:"
                f" ex[{key[0]!r}][rows]"
            )
        return self._each(lambda ex: ex[key])

    def __len__(self) -> int:
        return len(self._first)

    def __iter__(self) -> Iterator[MultiOutputExplanation]:
        """Go through the rows, each an explanation of one row."""
        return (self[i] for i in range(len(self)))

    @property
    def plot(self) -> Plots:
        """The pictures of one output are available as ``ex["setosa"].plot``."""
        first = next(iter(self.outputs))
        raise SeveralOutputsError(
            f"plot: a picture shows one output, ex[{first!r}].plot; the outputs are"
            f" {list(self.outputs)}"
        )

    def to_frame(self, level: float = 0.95) -> pd.DataFrame:
        """Return a tidy frame: one line per output, row and feature."""
        import pandas as pd

        frames = [ex.to_frame(level) for ex in self.outputs.values()]
        for name, frame in zip(self.outputs, frames, strict=True):
            frame.insert(0, "output", name)
        return pd.concat(frames, ignore_index=True)

    def to_shap(self, level: float = 0.95) -> Any:
        """Return a ``shap.Explanation`` with ``output_names``, outputs last."""
        parts = [ex.to_shap(level) for ex in self.outputs.values()]
        names = ["values", "base_values"] + (
            ["error_std", "lower_bounds", "upper_bounds"] if self.var is not None else []
        )
        arrays = {
            name: np.stack([getattr(part, name) for part in parts], axis=-1) for name in names
        }
        options = {
            "data": parts[0].data,
            "display_data": parts[0].display_data,
            "feature_names": list(self.feature_names),
            "output_names": list(self.outputs),
        }
        return type(parts[0])(**arrays, **options)

    def to_xarray(
        self, n_samples: int | None = None, n_chains: int = 4, random_state: RandomLike = 0
    ) -> xr.Dataset:
        """Return an ``xarray.Dataset`` with the dimension output last.

        Draws, as in `Explanation.to_xarray`, are independent between outputs.
        """
        xr = optional("xarray", "to_xarray()")
        generator = random_generator(random_state)
        parts = [ex.to_xarray(n_samples, n_chains, generator) for ex in self.outputs.values()]
        shared = [name for name in SHARED if name in parts[0] and name != "attribution"]
        result = xr.concat(
            [part.drop_vars(shared) for part in parts],
            dim=xr.Variable("output", list(self.outputs)),
        )
        result = result.transpose(..., "output").assign({name: parts[0][name] for name in shared})
        if n_samples is None:
            return result
        return result.set_coords(set(result.data_vars) - {"attribution"})

    def _content(self) -> dict[str, Any]:
        return {"outputs": [{"name": name, **ex.to_dict()} for name, ex in self.outputs.items()]}

    @classmethod
    def _of_content(cls, content: Any) -> Any:
        return storage.build(content)

    def __repr__(self) -> str:
        return "\n".join(f"Output {name!r}\n{ex!r}" for name, ex in self.outputs.items())

    def _repr_html_(self) -> str:
        from html import escape

        return "".join(
            f"<h4>{escape(name)}</h4>{ex._repr_html_()}" for name, ex in self.outputs.items()
        )

    def _heading(self) -> list[str]:
        return [f"Outputs {', '.join(self.outputs)}"]

    def _asked(self, question: Callable[[Distribution], Any]) -> Any:
        """Return the answers of all outputs' distributions, outputs last."""
        answers = [ex._asked(question) for ex in self.outputs.values()]
        if isinstance(answers[0], tuple):
            return tuple(map(_last, zip(*answers, strict=True)))
        return _last(answers)

    def _stack(self, part: Callable[[Explanation], Any]) -> Any:
        return _last([part(ex) for ex in self.outputs.values()])

    def _each(self, change: Callable[[Explanation], Explanation]) -> MultiOutputExplanation:
        return MultiOutputExplanation({name: change(ex) for name, ex in self.outputs.items()})


def _last(answers: Iterable[Any]) -> Any:
    """Return the answers of all outputs as one array, outputs last; None where one is unknown."""
    answers = list(answers)
    if any(answer is None for answer in answers):
        return None
    array = np.stack(answers, axis=-1)
    array.flags.writeable = False
    return array


def _belong_together(one: Explanation, two: Explanation) -> bool:
    """Return whether two explanations are of the same rows and know as much about them."""
    known = [(ex.var is None, ex.cov is None) for ex in (one, two)]
    shared = all(same(vars(one)[name], vars(two)[name]) for name in SHARED)
    return shared and known[0] == known[1]
