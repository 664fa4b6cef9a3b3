"""Which estimator a number of rows is given, and what is said of it."""

import pytest

from gpattr.tables.choice import EXACT_ROWS, chosen_estimator, resolved_estimator


@pytest.mark.parametrize(
    ("n", "expected", "words"),
    [
        (5, "exact", "5 rows: an exact Gaussian process."),
        (EXACT_ROWS, "exact", "2,000 rows: an exact Gaussian process."),
        (
            EXACT_ROWS + 1,
            "sparse",
            "2,001 rows: a sparse Gaussian process with up to 447 inducing inputs; ",
        ),
        (20_000, "sparse", "up to 1,000 inducing inputs; --estimator exact would take hours."),
        (100_000, "sparse", "--estimator exact would take weeks."),
    ],
)
def test_estimators_by_rows(n, expected, words):
    name, sentence = chosen_estimator(n, "regression")
    assert name == expected
    assert words in sentence
    assert resolved_estimator("auto", n) == (name, sentence)


def test_classifiers_are_exact_and_may_learn_from_some_rows():
    assert chosen_estimator(569, "classification") == (
        "exact",
        "569 rows: a Gaussian process classifier trained on all of them.",
    )
    name, sentence = chosen_estimator(20_000, "classification")
    assert name == "exact"
    assert "trained on a random 2,000 of them" in sentence


def test_what_is_asked_for_is_taken():
    assert resolved_estimator("sparse", 30) == ("sparse", "")
    assert resolved_estimator("exact", 30) == ("exact", "")
    name, sentence = resolved_estimator("exact", 4000)
    assert name == "exact"
    assert (
        sentence
        == "4,000 rows: an exact Gaussian process takes minutes; --estimator auto is faster."
    )
