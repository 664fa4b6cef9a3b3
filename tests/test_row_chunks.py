"""Batches of an iterable of tables: the same explanation as that of all rows at once."""

import io

import numpy as np
import pandas as pd
import pytest

import gpattr
from gpattr import Explainer, Explanation, MultiOutputExplanation
from gpattr.exceptions import InvalidInputError

RNG = np.random.default_rng(8)
FRAME = pd.DataFrame(RNG.normal(size=(25, 2)), columns=["a", "b"])
EXPLAINER = Explainer(gpattr.GPRegressor(n_restarts=0).fit(FRAME, RNG.normal(size=25)))


def close(one, two):
    for name in ("values", "std", "predictions", "base_values", "data"):
        np.testing.assert_allclose(
            getattr(one, name), getattr(two, name), rtol=1e-11, atol=1e-13, err_msg=name
        )
    assert one.row_names == two.row_names
    assert one.feature_names == two.feature_names


@pytest.mark.parametrize("made", [iter, list, tuple, lambda parts: (part for part in parts)])
@pytest.mark.parametrize("counted", [True, False])
def test_rows_go_on_from_table_to_table(made, counted):
    parts = [FRAME[:10], FRAME[10:10], FRAME[10:13], FRAME[13:]]
    if counted:
        parts = [part.reset_index(drop=True) for part in parts]
    found = list(EXPLAINER.batches(made(parts), batch_size=6))
    assert [len(part) for part in found] == [6, 4, 3, 6, 6]
    close(Explanation.concatenate(found), EXPLAINER(FRAME))


def test_arrays_and_the_chunks_of_a_file():
    arrays = (FRAME.to_numpy()[i : i + 10] for i in range(0, 25, 10))
    close(Explanation.concatenate(EXPLAINER.batches(arrays)), EXPLAINER(FRAME))
    text = FRAME.to_csv(index=False, float_format="%.17g")
    with pd.read_csv(io.StringIO(text), chunksize=7) as chunks:
        close(Explanation.concatenate(EXPLAINER.batches(chunks)), EXPLAINER(FRAME))


def test_names_of_an_index_stay():
    parts = [FRAME[:2].set_axis(["x", "y"]), FRAME[2:4].set_axis([7, 9])]
    found = Explanation.concatenate(EXPLAINER.batches(parts))
    assert found.row_names == ("x", "y", 7, 9)


def test_tables_are_read_when_they_are_needed():
    read = []

    def tables():
        for i in range(3):
            read.append(i)
            yield FRAME[i : i + 1]

    found = EXPLAINER.batches(tables())
    assert read == []
    next(found)
    assert read == [0]


def test_lists_of_numbers_are_one_table():
    assert len(next(EXPLAINER.batches(FRAME.to_numpy().tolist()))) == 25


def test_operators_with_a_baseline_for_each_row_count_on():
    rows = FRAME.to_numpy()
    own = gpattr.operators.IntegratedGradients(rows / 2.0)
    explainer = Explainer(EXPLAINER.posterior, attribution=own)
    found = Explanation.concatenate(explainer.batches([rows[:9], rows[9:]], batch_size=4))
    np.testing.assert_allclose(found.values, explainer(rows).values, rtol=1e-11, atol=1e-13)


def test_mistakes_name_the_table():
    other = FRAME.rename(columns={"b": "c"})
    found = EXPLAINER.batches([FRAME, other])
    next(found)
    with pytest.raises(InvalidInputError, match=r"table 1: X: .*missing \['b'\] and unknown"):
        next(found)
    with pytest.raises(InvalidInputError, match="table 0: X: expected rows"):
        list(EXPLAINER.batches(iter([[1.0, 2.0]])))
    with pytest.raises(InvalidInputError, match="baselines: they are those of one table"):
        EXPLAINER.batches([FRAME, FRAME], FRAME)
    unnamed = Explainer(gpattr.GPRegressor(n_restarts=0).fit(FRAME.to_numpy(), FRAME["a"]))
    with pytest.raises(InvalidInputError, match=r"table 1: X: expected the columns \['a', 'b'\]"):
        list(unnamed.batches([FRAME, other]))


def test_several_outputs_concatenate():
    Y = pd.DataFrame({"price": FRAME["a"] + RNG.normal(size=25), "size": RNG.normal(size=25)})
    explainer = Explainer(gpattr.MultiOutputGPRegressor(n_restarts=0).fit(FRAME, Y))
    found = MultiOutputExplanation.concatenate(explainer.batches([FRAME[:9], FRAME[9:]]))
    close(found, explainer(FRAME))
    assert found.output_names == ("price", "size")
    ex = explainer(FRAME)
    for parts, word in [
        ([], "at least one"),
        (3, "got a int"),
        ([ex["price"]], "got a Explanation as part 0"),
        ([ex, MultiOutputExplanation({"price": ex["price"]})], "set of outputs of part 1"),
        ([ex, explainer(FRAME, uncertainty="none")], "part 1"),
    ]:
        with pytest.raises(InvalidInputError, match=word):
            MultiOutputExplanation.concatenate(parts)
