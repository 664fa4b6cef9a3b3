"""Explained parts of a table: the rows of a part in, the bytes of a Parquet file out.

The work depends on nothing but the rows and the model, so whoever does it, and how often, the bytes
are the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpattr.engines import FrameFunction
from gpattr.explainer.importance_measures import folded_mean
from gpattr.tables.part_features import PartReader, Read

FILE, ROW = "file", "row"


@dataclass(frozen=True)
class Written:
    """The bytes of an explained part, and what its manifest says of it."""

    content: bytes
    facts: dict[str, Any]


@dataclass(frozen=True)
class Work:
    """Explain parts of the table of a ``reader`` with one function for each class.

    ``identifiers`` are columns that go with the rows.
    """

    reader: PartReader
    functions: Mapping[str, FrameFunction]
    identifiers: tuple[str, ...] = ()

    @property
    def columns(self) -> list[str]:
        """The columns of the result."""
        own = [FILE, ROW] if self.reader.stream.is_folder else [ROW]
        return [*own, *self.identifiers, *(name for name, _, _ in self._results())]

    def _results(self) -> list[tuple[str, str, str]]:
        """Return the columns that are computed: the name, the class, and its name there."""
        several = len(self.functions) > 1
        return [
            (f"{label}:{name}" if several else name, label, name)
            for label, function in self.functions.items()
            for name in function.results
        ]

    def __call__(self, number: int, frame: Any) -> Written:
        """Return the explanations of the rows of a part, from its file."""
        rows = self.reader.read(number, frame)
        found = {
            label: function(function.empty() if rows.X is None else rows.X)
            for label, function in self.functions.items()
        }
        content = self._content(number, rows, found)
        facts = {
            "part": number,
            "rows": len(rows.frame),
            "missing": int((~rows.usable).sum()),
            "problem": rows.problem,
            "sha256": hashlib.sha256(content).hexdigest(),
            "sums": {label: self._sums(label, table) for label, table in found.items()},
        }
        facts["missing"] += int(next(iter(found.values())).isna().any(axis=1).sum())
        return Written(content, facts)

    def _content(self, number: int, rows: Read, found: Mapping[str, Any]) -> bytes:
        import pyarrow as pa
        from pyarrow import parquet

        stream = self.reader.stream
        n, part = len(rows.frame), stream.parts[number]
        columns: dict[str, Any] = {}
        if stream.is_folder:
            columns[FILE] = pa.array([stream.names[part.file]] * n, pa.string())
        columns[ROW] = pa.array(rows.frame.index.to_numpy(np.int64))
        for name in self.identifiers:
            columns[name] = _texts(rows.frame[name] if name in rows.frame else [None] * n)
        for name, label, result in self._results():
            values = np.full(n, np.nan)
            if rows.X is not None:
                values[rows.usable] = found[label][result].to_numpy()
            columns[name] = pa.array(values, from_pandas=True)  # NaN is a missing value
        sink = pa.BufferOutputStream()
        parquet.write_table(pa.table(columns), sink, row_group_size=max(n, 1))
        return sink.getvalue().to_pybytes()

    def _sums(self, label: str, table: Any) -> dict[str, Any]:
        """Return sums over rows of |mean| and of E|attribution|, by feature."""
        names = self.functions[label].features
        table = table.dropna()
        mean, std = (
            table[[f"{kind}:{name}" for name in names]].to_numpy()
            for kind in ("attribution", "std")
        )
        sums = {"absolute": np.abs(mean), "expected": folded_mean(mean, std**2)}
        return {"rows": len(table)} | {
            kind: dict(zip(names, values.sum(axis=0).tolist(), strict=True))
            for kind, values in sums.items()
        }


def _texts(values: Any) -> Any:
    """Return identifiers as text, missing ones as missing."""
    import pandas as pd
    import pyarrow as pa

    column = pd.Series(values, dtype=object)
    return pa.array(column.where(column.isna(), column.astype(str)), pa.string(), from_pandas=True)
