"""A Dask cluster that explains parts: each a task, with the model sent once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from gpattr._core.optional import optional
from gpattr.exceptions import GpattrError, InvalidInputError

TIMEOUT = "10s"  # to find the scheduler
WAITING = 2  # tasks for each thread of the cluster, whose results are not written yet


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
