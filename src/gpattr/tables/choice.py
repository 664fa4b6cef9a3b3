"""The choice of an estimator by the number of rows, with a sentence that explains it.

An exact process costs O(n³) for each of about 80 training steps, a sparse one O(n m²) once for m
inducing inputs, after its hyperparameters have been learned from exact blocks of rows. Random
features predict as well as inducing inputs, but explaining a row with them takes twice as long (at
20 000 rows): they are chosen only of a table that is read in parts and has more rows than can be
kept, since they learn from each part once.
"""

from __future__ import annotations

from gpattr.estimators.inducing import default_number

AUTO = "auto"
EXACT_ROWS = 2000  # exact training takes less than half a minute on two cores
CLASSIFIED_ROWS = 2000  # used to train a classifier
MOST_KEPT = 1_000_000  # rows of a table in parts that a sparse process keeps while it learns
TRAINING = 2e-9  # seconds of exact training for each n³, on two cores
DURATIONS = (
    (90, "a minute"),
    (45 * 60, "minutes"),
    (24 * 3600, "hours"),
    (14 * 24 * 3600, "days"),
    (float("inf"), "weeks"),
)


def chosen_estimator(
    n: int, task: str = "regression", *, streamed: bool = False
) -> tuple[str, str]:
    """Return the estimator for n rows and why, in one sentence.

    It is ``"exact"``, ``"sparse"``, or ``"random-features"`` for very many rows of a table that is
    ``streamed``, in parts.
    """
    if task == "classification":
        if n <= CLASSIFIED_ROWS:
            return "exact", f"{n:,} rows: a Gaussian process classifier trained on all of them."
        return (
            "exact",
            f"{n:,} rows: a Gaussian process classifier trained on a random {CLASSIFIED_ROWS:,} of"
            " them.",
        )
    if n <= EXACT_ROWS:
        return "exact", f"{n:,} rows: an exact Gaussian process."
    if streamed and n > MOST_KEPT:
        return (
            "random-features",
            f"{n:,} rows: a Gaussian process of random features, which learns from one part of the"
            " table after the other.",
        )
    why = f"--estimator exact would take {_duration(n)}"
    return (
        "sparse",
        f"{n:,} rows: a sparse Gaussian process with up to {default_number(n):,} inducing inputs;"
        f" {why}.",
    )


def resolved_estimator(
    estimator: str, n: int, task: str = "regression", *, streamed: bool = False
) -> tuple[str, str]:
    """Return the estimator called ``estimator``, or chosen if ``"auto"``, and a sentence or ""."""
    if estimator == AUTO:
        return chosen_estimator(n, task, streamed=streamed)
    if estimator == "exact" and task == "regression" and n > EXACT_ROWS:
        return (
            estimator,
            f"{n:,} rows: an exact Gaussian process takes {_duration(n)}; --estimator auto is"
            " faster.",
        )
    return estimator, ""


def _duration(n: int) -> str:
    """Return roughly how long exact training on n rows takes, in words."""
    seconds = TRAINING * n**3
    return next(word for limit, word in DURATIONS if seconds < limit)
