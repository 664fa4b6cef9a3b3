"""Renamed arguments and names: the old ones work, warn at the caller's line, and say until when."""

import inspect

import numpy as np
import pytest

import gpattr
from gpattr._core.deprecation import Renamed, renamed_argument
from gpattr.exceptions import InvalidInputError


@renamed_argument("count", "n", since="1.2", removal="1.4")
def twice(n: int, *, more: int = 0) -> int:
    """Return 2n and more."""
    return 2 * n + more


def test_old_argument_is_passed_on_with_a_warning():
    with pytest.warns(FutureWarning) as found:
        assert twice(count=3, more=1) == 7
    assert str(found[0].message) == (
        "count= is now n=: renamed in gpattr 1.2; the old name will be removed in 1.4"
    )
    assert found[0].filename == __file__  # the caller's line, not gpattr's


def test_new_argument_does_not_warn():
    assert (twice(3), twice(n=3)) == (6, 6)
    assert list(inspect.signature(twice).parameters) == ["n", "more"]


@pytest.mark.parametrize("call", [lambda: twice(3, count=3), lambda: twice(n=3, count=3)])
def test_both_arguments_are_refused(call):
    with pytest.raises(InvalidInputError, match="count: it is the old name of n; give only n"):
        call()


@pytest.mark.parametrize(("old", "new"), [("count", "missing"), ("more", "n")])
def test_a_renaming_that_does_not_fit_is_a_mistake_of_ours(old, new):
    with pytest.raises(TypeError, match="cannot be renamed"):
        renamed_argument(old, new, since="1", removal="2")(inspect.unwrap(twice))


def test_old_names_of_the_package_warn_at_the_caller():
    with pytest.warns(FutureWarning, match=r"renamed in gpattr 0\.1.*removed in 0\.2") as found:
        assert gpattr.SampledExplanation is gpattr.Explanation
    assert found[0].filename == __file__
    with pytest.raises(AttributeError, match="Nothing"):
        gpattr.Nothing  # noqa: B018


@pytest.mark.parametrize("call", [gpattr.Explainer, lambda m, **k: gpattr.explain(m, [[0.0]], **k)])
def test_scale_is_the_old_name_of_output(call):
    kernel, X = gpattr.kernels.SquaredExponential(), np.array([[-1.0], [1.0]])
    model = gpattr.posteriors.LaplacePosterior(kernel, X, [0, 1])
    with pytest.warns(FutureWarning, match="scale= is now output="):
        call(model, scale="probability", n_draws=10)
    with pytest.warns(FutureWarning), pytest.raises(InvalidInputError, match="output: expected"):
        call(model, scale="logit")


def test_the_warning_can_point_further_up():
    def helper():
        Renamed("a", "b", "1", "2").warn(stacklevel=3)

    def entry():
        helper()

    with pytest.warns(FutureWarning) as found:
        entry()
    assert found[0].lineno == inspect.currentframe().f_lineno - 1
