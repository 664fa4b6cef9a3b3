"""A Dask cluster that explains parts: each a task, with the model sent once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from gpattr._core.optional import optional
from gpattr.exceptions import GpattrError, InvalidInputError

TIMEOUT = "10s"  # to find the scheduler
WAITING = 2  # tasks for each thread of the cluster, whose results are not written yet


def on_cluster(
    address: str, work: Callable[[int], Any], numbers: Sequence[int]
) -> Iterator[tuple[int, Any]]:
    """Yield (number, work(number)) as the workers at ``address`` finish, at most a few ahead."""
    from distributed import as_completed

    with _client(address) as client:
        threads = sum(client.nthreads().values())
        try:
            scattered = client.scatter(work, broadcast=True)
            left = iter(numbers)

            def submitted(number: int) -> Any:
                key = f"gpattr-part-{number}-{scattered.key}"
                return client.submit(_task, scattered, number, key=key, retries=3)

            first = [submitted(number) for number in islice(left, WAITING * threads)]
            running = as_completed(first, with_results=False)
            for future in running:
                number, result = future.result()
                future.release()
                yield number, result
                following = next(left, None)
                if following is not None:
                    running.add(submitted(following))
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


def _task(work: Callable[[int], Any], number: int) -> tuple[int, Any]:
    return number, work(number)


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
