"""Work on Dask: tasks over parts of the rows, tree reductions, progress, and lost clusters.

The scheduler is whichever Dask would use: threads by default, a cluster where there is a client.
Nothing a task needs is kept outside of the graph, so that a scheduler whose worker died can compute
again what is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from functools import reduce
from typing import Any
from uuid import uuid4

from dask import config
from dask.base import compute, get_scheduler, persist
from dask.callbacks import Callback
from dask.delayed import Delayed, delayed

from gpattr._core.memory import budget_in_force, memory_budget
from gpattr._core.workers import one_thread
from gpattr.estimators.progress import pass_progress
from gpattr.estimators.sums import FAN_IN
from gpattr.exceptions import ClusterError, GpattrError

QUIET = {"distributed.admin.large-graph-warning-threshold": "1GiB"}  # matrices travel in graphs


class Parcel:
    """A value that Dask passes on without a look inside."""

    def __init__(self, value: Any) -> None:
        self.value = value


def client() -> Any:
    """Return the client of the cluster that Dask would use, None where it is this process."""
    found = getattr(get_scheduler(), "__self__", None)
    return found if type(found).__module__.startswith("distributed") else None


def once(value: Any) -> Delayed:
    """Return a value as a node of its own, which travels to each worker once, not in every task."""
    return delayed(_unpacked, pure=False)(Parcel(value))


def each(function: Callable[..., Any], value: Any, parts: Sequence[Any]) -> list[Delayed]:
    """Return function(value, part) for every part, to be computed with one thread each."""
    shared, budget = once(value), Parcel(budget_in_force())
    name = f"{function.__name__}-{uuid4().hex}"
    return [
        delayed(_run, pure=False)(function, budget, shared, part, dask_key_name=f"{name}-{i}")
        for i, part in enumerate(parts)
    ]


def joined(join: Callable[[Any, Any], Any], parts: Sequence[Any]) -> Any:
    """Return the sum of parts, in the order of `sums.Tree`."""
    parts = list(parts)
    while len(parts) > 1:
        parts = [
            delayed(_fold, pure=False)(join, parts[i : i + FAN_IN])
            for i in range(0, len(parts), FAN_IN)
        ]
    return parts[0]


def computed(node: Any, *, parts: Sequence[Delayed] = (), verbose: int = 0, what: str = "") -> Any:
    """Return the value of a node, or of a list; with ``verbose`` show how many parts are done."""
    try:
        with config.set(QUIET if client() else {}):
            if not (verbose and what):
                return compute(node)[0]
            with pass_progress(verbose, what, len(parts)) as step:
                return _watched(node, parts, step)
    except GpattrError:
        raise
    except (Exception, CancelledError) as error:
        if _of_cluster(error):
            raise ClusterError(
                "the Dask cluster was lost, or gave up, before the result was there"
                f" ({type(error).__name__}: {error}); nothing was learned from this call. Start"
                " a cluster and call fit again"
            ) from error
        raise


def kept(nodes: list[Delayed], size: float) -> list[Delayed]:
    """Return nodes whose values, of this size in bytes, workers keep if a quarter of theirs fits.

    Elsewhere, and in this process, they are computed again in each pass.
    """
    cluster = client()
    if cluster is None or size > 0.25 * _memory(cluster):
        return nodes
    with config.set(QUIET):
        return list(persist(*nodes))


def _memory(cluster: Any) -> float:
    try:
        about = cluster.scheduler_info(n_workers=-1)
    except TypeError:  # versions that always describe all workers
        about = cluster.scheduler_info()
    limits = [float(worker["memory_limit"]) for worker in about["workers"].values()]
    return float("inf") if 0.0 in limits else sum(limits)


def _watched(node: Any, parts: Sequence[Delayed], step: Callable[[], None]) -> Any:
    cluster, keys = client(), {part.key for part in parts}
    if cluster is None:

        def done(key: Any, *_: Any) -> None:
            if key in keys:
                step()

        with Callback(posttask=done):
            return compute(node)[0]
    result, *watched = cluster.compute([node, *parts])
    while watched:  # a part is needed no longer than by the join that takes it
        watched.pop().add_done_callback(lambda _: step())
    return result.result()


def _of_cluster(error: BaseException) -> bool:
    return isinstance(error, CancelledError) or type(error).__module__.startswith("distributed")


def _unpacked(parcel: Parcel) -> Any:
    return parcel.value


def _run(function: Callable[..., Any], budget: Parcel, value: Any, part: Any) -> Any:
    with one_thread(), memory_budget(**budget.value):
        return function(value, part)


def _fold(join: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    return reduce(join, parts)
