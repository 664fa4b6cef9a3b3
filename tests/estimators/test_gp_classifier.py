"""Classification: scikit-learn's checks and its latent function, probabilities to the last digits,
explanations, files.
"""

import json
import warnings

import mpmath
import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.gaussian_process import GaussianProcessClassifier
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from gpattr import Explainer, GPClassifier
from gpattr._core import documents
from gpattr.kernels import Matern52, SquaredExponential
from gpattr.means import Constant
from gpattr.posteriors import ExpectationPropagationPosterior, LaplacePosterior
from gpattr.special.logistic import expected_probability

KINDS = {
    "expectation-propagation": ExpectationPropagationPosterior,
    "laplace": LaplacePosterior,
}
RNG = np.random.default_rng(1)
N, D = 90, 3
X = RNG.normal(size=(N, D)) * [1.0, 10.0, 0.1]
Y = np.where(X[:, 0] + (X[:, 1] / 10) ** 2 + 0.4 * RNG.normal(size=N) > 0.8, "ill", "well")


@parametrize_with_checks([GPClassifier(), GPClassifier(optimize=False)])
def test_scikit_learn_checks(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("needs SCIPY_ARRAY_API=1 set before SciPy is imported")
    check(estimator)


def test_training_finds_what_scikit_learn_finds():
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    kernel = ConstantKernel(1.0, (1e-4, 1e4)) * RBF(np.full(D, 0.6 * D**0.5), (1e-2, 1e4))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a length-scale at its bound
        theirs = GaussianProcessClassifier(kernel, max_iter_predict=1000).fit(Z, Y)
    ours = GPClassifier(approximation="laplace", hyperparameters="optimal").fit(X, Y)
    assert ours.log_marginal_likelihood_ >= theirs.log_marginal_likelihood_value_ - 1e-3
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    same = GPClassifier(
        SquaredExponential(theirs.kernel_.k2.length_scale, theirs.kernel_.k1.constant_value),
        approximation="laplace",
        optimize=False,
    ).fit(Z, Y)
    assert same.log_marginal_likelihood_ == pytest.approx(
        theirs.log_marginal_likelihood_value_, rel=1e-7
    )
    np.testing.assert_allclose(
        same.predict_proba(Z), theirs.predict_proba(Z), atol=2e-3
    )  # theirs: five error functions
    np.testing.assert_array_equal(same.predict(Z), theirs.predict(Z))


@pytest.mark.slow
def test_probabilities_to_the_last_digits():
    cases = [
        (m, s)
        for m in (-30.0, -3.0, 0.0, 0.7, 12.0)
        for s in (0.0, 1e-8, 0.3, 0.999, 1.0, 1.001, 4.0, 30.0, 1e4)
    ]
    values = expected_probability(*np.array(cases).T)
    with mpmath.workdps(30):
        for (m, s), value in zip(cases, values):
            if s == 0:
                truth = 1 / (1 + mpmath.exp(-m))
            else:
                middle = -mpmath.mpf(m) / s
                points = sorted(
                    {-12, -6, -3, 0, 3, 6, 12}
                    | {min(max(middle + k / s, -12), 12) for k in (-40, -10, -3, 0, 3, 10, 40)}
                )
                truth = mpmath.quad(
                    lambda z: mpmath.npdf(z) / (1 + mpmath.exp(-(m + s * z))), points
                )
            assert value == pytest.approx(float(truth), abs=1e-14)
    assert expected_probability([0.0], [5.0])[0] == pytest.approx(0.5, abs=1e-15)


def test_explanations_are_of_the_log_odds():
    frame = pd.DataFrame(X, columns=["age", "dose", "rate"])
    model = GPClassifier(Matern52, mean=Constant(-1.0)).fit(frame, Y)
    ex = Explainer(model)(frame[["rate", "age", "dose"]][:5])
    np.testing.assert_allclose(ex.predictions, model.predict_latent(frame[:5]), rtol=1e-12)
    np.testing.assert_allclose(ex.values.sum(axis=1), ex.predictions - ex.base_values, atol=1e-9)
    probabilities = model.predict_proba(frame)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=0, atol=1e-14)
    agree = model.predict(frame) == model.classes_[probabilities.argmax(axis=1)]
    assert agree.all()
    assert model.score(frame, Y) > 0.8


@pytest.mark.slow
def test_several_classes_one_against_the_rest(tmp_path):
    labels = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    frame = pd.DataFrame(X, columns=["age", "dose", "rate"])
    model = GPClassifier().fit(frame, labels)
    assert model.score(frame, labels) > 0.9
    wrapped = OneVsRestClassifier(GPClassifier()).fit(X, labels)
    np.testing.assert_array_equal(model.classes_, ["high", "low", "middle"])
    np.testing.assert_allclose(
        model.predict_proba(frame), wrapped.predict_proba(X), rtol=1e-9, atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(frame), wrapped.predict(X))
    ex = Explainer(model)(frame[:3])
    assert ex.output_names == ("high", "low", "middle")
    for k, name in enumerate(ex.output_names):
        single = GPClassifier().fit(frame, labels == name)
        np.testing.assert_array_equal(ex[name].values, Explainer(single)(frame[:3]).values)
        np.testing.assert_array_equal(
            model.predict_latent(frame, return_std=True)[1][:, k],
            single.predict_latent(frame, True)[1],
        )
    np.testing.assert_allclose(ex.delta, 0.0, atol=1e-9)
    assert model.log_marginal_likelihood_ == pytest.approx(
        sum(e.log_marginal_likelihood_ for e in wrapped.estimators_), rel=1e-9
    )
    model.save(tmp_path / "m.json")
    back = GPClassifier.load(tmp_path / "m.json")
    np.testing.assert_array_equal(back.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(back.predict(frame), model.predict(frame))
    assert Explainer(back)(frame[:3]) == ex


def test_probabilities_where_every_class_is_ruled_out():
    """Where all probabilities underflow, they are equal rather than undefined."""
    labels = np.arange(N) % 3
    model = GPClassifier(
        mean=Constant(-2000.0), kernel=SquaredExponential(0.1, 1.0), optimize=False
    ).fit(X, labels)
    np.testing.assert_array_equal(model.predict_proba(X + 100.0), 1.0 / 3.0)


def test_files_and_progress(tmp_path, capsys):
    frame = pd.DataFrame(X, columns=["age", "dose", "rate"])
    model = GPClassifier(verbose=1).fit(frame, Y)
    assert "training" in capsys.readouterr().err
    model.save(tmp_path / "m.json")
    loaded = GPClassifier.load(tmp_path / "m.json")
    np.testing.assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
    np.testing.assert_array_equal(loaded.predict(frame), model.predict(frame))
    np.testing.assert_array_equal(Explainer(loaded)(frame[:3]).cov, Explainer(model)(frame[:3]).cov)


def test_approximations_and_their_files(tmp_path):
    """Files of older versions, which name no approximation, have Laplace's."""
    models = {kind: GPClassifier(approximation=kind).fit(X, Y) for kind in KINDS}
    for kind, model in models.items():
        assert all(type(part) is KINDS[kind] for _, part in model.posterior_.components)
        model.save(tmp_path / "m.json")
        loaded = GPClassifier.load(tmp_path / "m.json")
        assert loaded.approximation == kind
        np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        again = model.conditioned(X, Y)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    file = json.loads((tmp_path / "m.json").read_text())
    del file["content"]["approximation"], file["content"]["options"]["approximation"]
    file["sha256"] = documents._digest(documents._canonical(file["content"]))
    (tmp_path / "m.json").write_text(json.dumps(file))
    older = GPClassifier.load(tmp_path / "m.json")
    np.testing.assert_array_equal(older.predict_proba(X), models["laplace"].predict_proba(X))


def test_classes_that_separate_are_told_apart_with_confidence():
    """On unseen rows too: Laplace's approximation calls every one of them uncertain."""
    data = load_breast_cancer()
    rows, labels = data.data[:300, 20:25], data.target[:300]
    losses = {}
    for kind in KINDS:
        model = GPClassifier(approximation=kind).fit(rows[::2], labels[::2])
        chances = model.predict_proba(rows[1::2])[np.arange(150), labels[1::2]]
        losses[kind] = -np.log(chances).mean()
    assert losses["expectation-propagation"] < 0.97 * losses["laplace"], losses


def test_restarts_and_bounds():
    fixed = GPClassifier(bounds={"variance": (4.0, 4.0)}).fit(X, Y)
    assert fixed.kernel_.variance == pytest.approx(4.0, rel=1e-12)
    free = GPClassifier(n_restarts=1, random_state=0).fit(X, Y)
    assert free.log_marginal_likelihood_ >= fixed.log_marginal_likelihood_ - 1e-6


@pytest.mark.parametrize(
    ("options", "labels", "message"),
    [
        (
            {},
            np.ones(N, dtype=int),
            r"y: expected labels of at least two classes, got 1 class: 1 everywhere",
        ),
        ({"mean": "constant"}, Y, "mean: expected 'zero' or a gpattr mean, got 'constant'"),
        ({"kernel": "SE"}, Y, "kernel: expected a gpattr kernel"),
        ({"approximation": "ep"}, Y, "approximation: expected one of 'expectation-propagation', "),
        ({"n_restarts": -1}, Y, "n_restarts: expected an integer of 0 to 1000000"),
        ({}, RNG.normal(size=N), "Unknown label type: continuous"),
        (
            {},
            np.ma.masked_equal(np.arange(N) % 2, 1),
            "y: expected plain labels, got a masked array",
        ),
        ({}, ["a", None, "b"] * (N // 3), "y: expected labels of one kind"),
        ({"bounds": {"noise_variance": (1, 2)}}, Y, "bounds: expected hyperparameters among"),
        ({"kernel": SquaredExponential([1.0, 2.0])}, Y, "lengthscale"),
    ],
)
def test_bad_input(options, labels, message):
    with pytest.raises(ValueError, match=message):
        GPClassifier(**options).fit(X, labels)


@pytest.mark.parametrize("kind", [np.int32, np.uint8, bool, object, str])
def test_files_keep_the_type_of_labels(kind, tmp_path):
    labels = np.array(
        ["a", "b"] * (N // 2) if kind in (object, str) else np.arange(N) % 2, dtype=kind
    )
    model = GPClassifier(optimize=False).fit(X, labels)
    model.save(tmp_path / "m.json")
    assert GPClassifier.load(tmp_path / "m.json").classes_.dtype == model.classes_.dtype


def test_training_starts_from_smooth_functions():
    """On correlated features a start with short length-scales and unit variance ends at another
    optimum, two units lower.
    """
    data = load_breast_cancer()
    rows, labels = data.data[:150, :5], data.target[:150]
    model = GPClassifier().fit(rows, labels)
    restarted = GPClassifier(n_restarts=3, random_state=0).fit(rows, labels)
    assert model.log_marginal_likelihood_ == pytest.approx(
        restarted.log_marginal_likelihood_, abs=1e-2
    )
