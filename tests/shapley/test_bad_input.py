"""Shapley values of what cannot be explained: each mistake is refused by the argument that made it.

What is refused here is refused in one sentence, before anything is computed or written.
"""

import re

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gpattr
from gpattr import Baselines, Explainer, Explanation, Marginals, explain, kernels
from gpattr.cli import app
from gpattr.exceptions import (
    GpattrError,
    InvalidIndexError,
    InvalidInputError,
    NoClosedFormError,
    TooLargeError,
    UnsupportedModelError,
)
from gpattr.operators import Gradient, IntegratedGradients, Shapley
from gpattr.posteriors import ExactPosterior

NAMES = ["acid", "sugar", "salt", "pH"]
RNG = np.random.default_rng(3)
X = RNG.normal(size=(12, 4))
Y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
WIDE = RNG.normal(size=(9, 13))
EQUAL = np.full(12, 1 / 12)
SHAPLEY = {"attribution": "shapley"}


@pytest.fixture(scope="module")
def model():
    model = gpattr.GPRegressor(kernels.SquaredExponential([1.0, 1.2, 0.8, 1.5]), optimize=False)
    return model.fit(pd.DataFrame(X, columns=NAMES), Y)


@pytest.fixture(scope="module")
def classifier():
    model = gpattr.GPClassifier(kernels.SquaredExponential(), optimize=False)
    return model.fit(X, (Y > 0).astype(int))


@pytest.fixture(scope="module")
def warped():
    """Thirteen features and a kernel without a product or a mixture."""
    kernel = kernels.Warped(
        kernels.SquaredExponential(),
        np.tanh,
        lambda X: (1.0 - np.tanh(X) ** 2)[..., None] * np.eye(X.shape[-1]),
    )
    return ExactPosterior(kernel, WIDE, WIDE.sum(axis=1), noise=0.1)


def refused(message, call, error=InvalidInputError):
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, GpattrError)


def test_exact_values_of_too_many_players_are_refused_with_their_number(warped):
    explainer = Explainer(warped, np.zeros(13), method="exact", **SHAPLEY)
    message = 'method: "exact" .* at most 12 players, of which there are 13; use method="auto"'
    for call in (explainer, explainer.joint, explainer.importance):
        refused(message, lambda call=call: call(WIDE[:2]), NoClosedFormError)
    sampled = Explainer(warped, np.zeros(13), **SHAPLEY)(WIDE[:2])
    assert sampled.method.startswith("permutations")
    twelve = {"first": [0, 1]}
    assert (
        Explainer(warped, np.zeros(13), method="exact", players=twelve, **SHAPLEY)(WIDE[:2]).method
        == "enumeration"
    )


def test_interactions_of_too_many_players_are_refused_with_their_number(warped):
    explainer = Explainer(warped, np.zeros(13), **SHAPLEY)
    refused(
        "at most 12 players; there are 13",
        lambda: explainer.interactions(WIDE[:2]),
        UnsupportedModelError,
    )


@pytest.mark.parametrize(
    ("players", "message", "error"),
    [
        ({"g": []}, r"players: .* at least one feature for 'g', got \[\]", InvalidInputError),
        ({"g": ["acid", "pH"], "h": ["pH"]}, "players: 'pH' is in 'g' and in 'h'", None),
        ({"g": ["acid", "acid"]}, "players: 'acid' is in 'g' and in 'g'", None),
        ({"g": ["alcohol"]}, r"players: in 'g', .* one of \['acid', .*'alcohol'", None),
        ({"g": [4]}, "players: in 'g', .* below 4.* got 4", InvalidIndexError),
        ({"g": [True]}, "players: in 'g', .* got True", InvalidIndexError),
        ({"g": "acid"}, "players: expected a list .* 'g', got 'acid'", None),
        ({"pH": ["acid", "sugar"]}, "players: 'pH' is also the name of a feature", None),
        ({1: ["acid"]}, "players: expected names of groups, got 1", None),
        ([["acid", "sugar"]], "players: expected a dictionary .* got a list", None),
    ],
)
def test_players_that_are_no_groups_of_features(model, players, message, error):
    kind = error or InvalidInputError
    refused(message, lambda: Explainer(model, players=players, **SHAPLEY), kind)
    refused(message, lambda: explain(model, X, players=players, **SHAPLEY), kind)


@pytest.mark.parametrize("attribution", ["integrated_gradients", Gradient(), Shapley(X[0])])
def test_players_belong_to_the_name_of_shapley_values(model, attribution):
    refused(
        r'players: expected attribution="shapley".* ex\.group',
        lambda: Explainer(model, attribution=attribution, players={"g": ["acid", "pH"]}),
    )


def test_marginals_have_no_straight_paths(model):
    why = "baseline: integrated gradients follow straight paths, .* drawn independently"
    refused(why, lambda: Explainer(model, Marginals(X)))
    refused(why, lambda: explain(model, X, Marginals(X)))
    refused(why, lambda: IntegratedGradients(Marginals(X)))


@pytest.mark.parametrize("kind", [Baselines, Marginals])
def test_backgrounds_that_are_none(model, kind):
    refused(r"at least one row .* got shape \(0, 4\)", lambda: kind(X[:0]))
    refused(
        "baseline: expected points with 4 features, got 3",
        lambda: Explainer(model, kind(X[:, :3]), **SHAPLEY),
    )
    other = pd.DataFrame(X, columns=[*NAMES[:3], "alcohol"])
    refused(
        r"baseline: expected the columns .* missing \['pH'\] and unknown \['alcohol'\]",
        lambda: Explainer(model, kind(other), **SHAPLEY),
    )
    refused("finite numbers, got nan", lambda: kind(np.where(np.arange(4) == 2, np.nan, X)))


@pytest.mark.parametrize("kind", [Baselines, Marginals])
@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            np.where(np.arange(12) == 5, -0.5, 1.5 / 11),
            "no negative weight, got -0.5 at position 5",
        ),
        (0.9 * EQUAL, r"weights that sum to 1, got a sum of 0\.9; divide"),
        (np.where(np.arange(12) == 5, np.nan, EQUAL), "finite numbers, got nan at position 5"),
        (EQUAL[:5], r"12 weights \(one per baseline\), got 5"),
        (EQUAL[:, None], r"one dimension, got an array of shape \(12, 1\)"),
        ("equal", "real numbers, got 'equal'"),
    ],
)
def test_weights_that_are_no_distribution(kind, weights, message):
    refused(f"^weights: expected {message}", lambda: kind(X, weights))


def test_covariances_between_pairs_that_do_not_fit_are_refused_with_their_size(model):
    explainer = Explainer(model, **SHAPLEY)
    size = r"covariance between pairs \(12 × 10 × 10\) would take 9.38 KiB, more than the 8 KiB"
    with gpattr.memory_budget(result=8192):
        refused(
            rf"{size} allowed: .*pairs=\[…\]",
            lambda: explainer.interactions(X, uncertainty="cov"),
            TooLargeError,
        )
        some = explainer.interactions(X, uncertainty="cov", pairs=[("acid", "pH"), ("pH", "pH")])
        assert some.cov.shape == (12, 2, 2)
        assert explainer.interactions(X).std.shape == (12, 4, 4)


@pytest.mark.parametrize("name", ["shaply", "Shapley", "", None, 3, Shapley])
def test_attributions_without_such_a_name(model, name):
    message = f'attribution: expected .*"shapley".* got {re.escape(repr(name))}'
    refused(message, lambda: Explainer(model, attribution=name))
    refused(message, lambda: explain(model, X, attribution=name))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({**SHAPLEY, "method": "quadrature"}, 'Shapley supports .*, got "quadrature"'),
        ({**SHAPLEY, "method": "right", "n_steps": 4}, 'Shapley supports .*, got "right"'),
        ({"method": "permutations"}, 'IntegratedGradients supports .*, got "permutations"'),
        ({**SHAPLEY, "method": "sampling"}, "expected one of .*'permutations'.* got 'sampling'"),
    ],
)
def test_methods_of_other_attributions_are_refused_at_once(model, options, message):
    refused(f"^method: {message}", lambda: Explainer(model, **options))


def test_interactions_are_not_sampled(model):
    explainer = Explainer(model, method="permutations", **SHAPLEY)
    refused(
        'method: ShapleyInteractions supports "auto", "exact", got "permutations"',
        lambda: explainer.interactions(X),
    )


@pytest.mark.parametrize("steps", [0, 1, 1.5, True, -3, 10**30, "4", [4]])
def test_numbers_of_permutations_that_are_none(model, steps):
    refused(
        rf"n_steps: expected an integer of 2 to 1000000, got {re.escape(repr(steps))}",
        lambda: Explainer(model, method="permutations", n_steps=steps, **SHAPLEY),
    )


def test_permutations_that_do_not_fit_are_refused_with_their_size(model):
    explainer = Explainer(model, method="permutations", n_steps=10**6, **SHAPLEY)
    with gpattr.memory_budget(result=1e6):
        refused("n_steps: .*10000000 × 8.* use fewer", lambda: explainer(X), TooLargeError)


def test_steps_belong_to_permutations(model):
    refused(
        "n_steps: only the rules .* and permutations take",
        lambda: Explainer(model, n_steps=4, **SHAPLEY),
    )


def test_class_probabilities_have_no_shapley_values(classifier):
    refused(
        """attribution: output="probability" supports only .* got 'shapley'""",
        lambda: Explainer(classifier, output="probability", **SHAPLEY),
    )
    latent = Explainer(classifier, **SHAPLEY)(X[:2])
    assert latent.attribution == "Shapley values"


@pytest.mark.parametrize("background", [Marginals(X), Baselines(X)])
def test_baselines_of_each_row_replace_a_background(model, background):
    own, plain = Explainer(model, background, **SHAPLEY), Explainer(model, X[0], **SHAPLEY)
    one, two = own(X[:3], baselines=X[3:6]), plain(X[:3], baselines=X[3:6])
    assert one == two
    assert one.baseline_name == "one per row"
    np.testing.assert_array_equal(one.baselines, X[3:6])
    matrices = own.interactions(X[:3], baselines=X[3:6])
    np.testing.assert_allclose(matrices.attributions, one.values, rtol=0, atol=1e-12)
    refused(r"baselines: .*one row per row of X \(3\), got 2", lambda: own(X[:3], X[3:5]))
    refused(
        "baselines: expected one baseline per row of X, got .*Explainer", lambda: own(X, background)
    )


def test_rows_that_are_no_rows_of_the_model(model):
    explainer = Explainer(model, Marginals(X), **SHAPLEY)
    unknown = np.where((np.arange(12)[:, None] == 7) & (np.arange(4) == 2), np.nan, X)
    for call in (explainer, explainer.interactions, explainer.importance, explainer.joint):
        refused("X: expected 4 columns, got 3", lambda call=call: call(X[:, :3]))
        refused(
            "X: expected finite numbers, got nan in row 7, column 2",
            lambda call=call: call(unknown),
        )
        refused(
            r"X: expected the columns .* unknown \['alcohol'\]",
            lambda call=call: call(pd.DataFrame(X, columns=[*NAMES[:3], "alcohol"])),
        )


def test_a_path_needs_one_baseline(model):
    refused(
        "baseline: `along` needs one numeric baseline point",
        lambda: Explainer(model, Marginals(X), **SHAPLEY).along(X[0]),
        UnsupportedModelError,
    )


@pytest.mark.slow
def test_nothing_is_written_for_an_attribution_without_such_a_name(tmp_path):
    table = tmp_path / "wine.csv"
    pd.DataFrame(X, columns=NAMES).assign(quality=Y).to_csv(table, index=False)
    command = ["explain", str(table), "--target", "quality", "--out", str(tmp_path / "out")]
    for name in ("nonsense", "", "shapley,integrated-gradients"):
        result = CliRunner().invoke(app, [*command, "--attribution", name])
        assert result.exit_code != 0
        words = " ".join(result.output.split())
        assert "--attribution" in words
        assert "integrated-gradients or shapley" in words
        assert "Traceback" not in words
        assert list(tmp_path.iterdir()) == [table]
    result = CliRunner().invoke(app, [*command, "--attribution", " Shapley "])
    assert result.exit_code == 0, result.output
    ex = Explanation.load(tmp_path / "out" / "explanation.json")
    assert ex.attribution == "Shapley values"
