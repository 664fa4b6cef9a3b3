"""Posteriors of encoded columns as posteriors of features.

A category is encoded as several columns, a date too. Rows are those columns; what is known of them
is added up to features, with the covariances between them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from gpattr._core.array import Array, namespace
from gpattr._core.validation import as_matrix, is_frame
from gpattr.encoders import Encoder
from gpattr.exceptions import InvalidInputError
from gpattr.operators import Operator
from gpattr.posteriors.base import Posterior
from gpattr.posteriors.bound import Bound, Evaluation
from gpattr.posteriors.wrapper import LinearBound, WrapperPosterior, check_wrapped


@dataclass(frozen=True, eq=False, init=False, repr=False)
class EncodedPosterior(WrapperPosterior):
    """f(row) = g(columns) for the ``posterior`` of g, a function of the columns of ``encoder``.

    Rows are frames with the encoder's columns, or arrays of encoded columns.

    Examples
    --------
    >>> import pandas as pd
    >>> import gpattr
    >>> from gpattr.encoders import Encoder
    >>> frame = pd.DataFrame({"size": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "b", "a", "b"]})
    >>> encoder = Encoder(("size", "kind"), {"kind": ("a", "b")})
    >>> columns, prior = encoder.encode("frame", frame), gpattr.kernels.SquaredExponential()
    >>> inner = gpattr.posteriors.ExactPosterior(prior, columns, [1.0, 3.0, 2.0, 4.0], noise=0.01)
    >>> posterior = gpattr.posteriors.EncodedPosterior(inner, encoder)
    >>> gpattr.Explainer(posterior)(frame).feature_names
    ('size', 'kind')
    """

    posterior: Posterior

    def __init__(self, posterior: Posterior, encoder: Encoder) -> None:
        if not isinstance(encoder, Encoder):
            raise InvalidInputError(
                f"encoder: expected a gpattr Encoder, got a {type(encoder).__name__}"
            )
        check_wrapped(posterior)
        if posterior.n_features != len(encoder.columns):
            raise InvalidInputError(
                f"encoder: expected one with {posterior.n_features} encoded columns, got"
                f" {len(encoder.columns)}"
            )
        values = {
            "posterior": posterior,
            "encoder": encoder,
            "feature_names": encoder.features,
            "label": posterior.label,
            "note": posterior.note,
        }
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def n_features(self) -> int:
        return len(self._encoder.features)

    @property
    def n_columns(self) -> int:
        return self.posterior.n_features

    @property
    def in_columns(self) -> Posterior:
        return self.posterior

    @property
    def reference_points(self) -> Mapping[str, Array]:
        """The inner posterior's points, as encoded columns."""
        return self.posterior.reference_points

    @property
    def training_inputs(self) -> Array | None:
        """The inputs the model was trained on, as encoded columns, if it still has them."""
        return self.posterior.training_inputs

    def around(self, posterior: Posterior) -> EncodedPosterior:
        return EncodedPosterior(posterior, self._encoder)

    @property
    def _encoder(self) -> Encoder:
        assert self.encoder is not None
        return self.encoder

    def rows(self, name: str, X: Any) -> Array:
        """Return a frame with the encoder's columns, or an array of encoded ones, as an array."""
        if is_frame(X):
            X = self._encoder.encode(name, X)
        return as_matrix(name, X, n_features=self.n_columns, like=self.like)

    def bind(self, operator: Operator, evaluation: Evaluation) -> Bound:
        encoding = namespace(self.like).asarray(self._encoder.gathering)
        operator = operator.encoded(encoding)
        G, needed = operator.gather(encoding), evaluation
        if evaluation.uncertainty == "std" and ((G != 0).sum(axis=0) > 1).any():
            needed = replace(evaluation, uncertainty="cov")  # sums need what lies between
        return LinearBound(self.posterior.bind(operator, needed), operator, evaluation, G)

    def __repr__(self) -> str:
        return f"EncodedPosterior({self.posterior!r})"
