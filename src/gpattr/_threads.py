"""How many threads linear algebra takes."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

SMALL = 400  # rows: up to here a second thread gains less than a fifth


def threads_for(n: int) -> AbstractContextManager[object]:
    """Return a context in which work on (n, n) matrices takes one thread if they are small.

    Threads that wait for each other spin. Where other programs use the cores too, two threads for small matrices were measured to
    take three times as long as one.
    """
    if n > SMALL:
        return nullcontext()
    from threadpoolctl import threadpool_limits

    return threadpool_limits(limits=1, user_api="blas")
