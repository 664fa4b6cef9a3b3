"""Explained parts of a table: the rows of a part in, the bytes of a Parquet file out.

The work depends on nothing but the rows and the model, so whoever does it, and how often, the bytes
are the same. On a Dask cluster each part is a task, with its rows, and the model is sent once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from gpattr._core.optional import optional
from gpattr.engines import FrameFunction
from gpattr.exceptions import GpattrError, InvalidInputError
from gpattr.explainer.importance_measures import folded_mean
from gpattr.tables.part_features import PartReader, Read

FILE, ROW = "file", "row"
TIMEOUT = "10s"  # to find the scheduler of a cluster
WAITING = 2  # tasks for each thread of the cluster, whose results are not written yet


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

    def __call__(self, number: int, frame: Any) -> tuple[bytes, dict[str, Any]]:
        """Return the bytes of an explained part, and its entry in the manifest."""
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
        return content, facts

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


def on_cluster(
    address: str, work: Callable[[int, Any], Any], frames: Iterable[tuple[int, Any]]
) -> Iterator[Any]:
    """Yield work(number, frame) as the workers at ``address`` finish, at most a few ahead."""
    from distributed import as_completed

    with _client(address) as client:
        threads = sum(client.nthreads().values())
        try:
            scattered = client.scatter(work, broadcast=True)
            submitted = (
                client.submit(_task, scattered, number, frame, pure=False, retries=3)
                for number, frame in frames
            )
            running = as_completed(islice(submitted, WAITING * threads), with_results=False)
            for future in running:
                yield future.result()
                future.release()
                running.update(islice(submitted, 1))
        except GpattrError:
            raise
        except Exception as error:
            raise InvalidInputError(
                f"--dask: the cluster at {address} failed ({type(error).__name__}:"
                f" {_first_line(error)}); what is done stays, and the same command goes on"
            ) from None


def check_cluster(address: str) -> None:
    """Refuse an address where there is no cluster, or one without workers."""
    with _client(address):
        pass


def _client(address: str) -> Any:
    """Return a client of a cluster that has workers."""
    distributed = optional("distributed", "--dask")
    client: Any
    try:
        client = distributed.Client(address, timeout=TIMEOUT)
    except (OSError, TimeoutError, ValueError) as error:
        raise InvalidInputError(
            "--dask: expected the address of a Dask scheduler that can be reached, such as"
            f" tcp://127.0.0.1:8786, got {address!r} ({_first_line(error)})"
        ) from None
    if not client.nthreads():
        client.close()
        raise InvalidInputError(f"--dask: the cluster at {address} has no workers")
    return client


def _task(work: Callable[[int, Any], Any], number: int, frame: Any) -> Any:
    return work(number, frame)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
