"""One thread for small matrices, and only while they are worked on."""

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from gpattr import GPRegressor
from gpattr._threads import SMALL, threads_for
from gpattr.estimators import gp_regressor


def blas_threads() -> list[int]:
    return [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]


def test_small_matrices_take_one_thread():
    before = blas_threads()
    with threads_for(SMALL):
        assert set(blas_threads()) == {1}
    assert blas_threads() == before
    with threads_for(SMALL + 1):
        assert blas_threads() == before
    with pytest.raises(ValueError), threads_for(3):
        raise ValueError
    assert blas_threads() == before


def test_training_small_models_takes_one_thread(monkeypatch):
    seen = []
    maximise = gp_regressor.maximise
    monkeypatch.setattr(gp_regressor, "maximise", lambda *a, **k: seen.append(set(blas_threads())) or maximise(*a, **k))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    GPRegressor().fit(X, X[:, 0] + 0.1 * rng.normal(size=30))
    assert seen == [{1}]
