"""Tables of kernels, on a small library made up here."""

from operator import add, mul
from types import SimpleNamespace

import numpy as np
import pytest

from gpattr.adapters.translation import KernelTable, combined, rule, twice
from gpattr.exceptions import UnsupportedModelError
from gpattr.kernels import Matern52, Select, SquaredExponential, Sum

X = np.random.default_rng(0).normal(size=(5, 3))


class Base(SimpleNamespace):
    columns = (0, 1, 2)


class Gauss(Base):
    pass


class Rough(Base):
    pass


class Total(Base):
    pass


class Times(Base):
    pass


class Odd(Base):
    pass


def power(kernel, here):
    return SquaredExponential(float(here.whole_power("Odd of degree", kernel.degree, "degree")))


TABLE = KernelTable(
    "Small's",
    {
        "Gauss": rule(SquaredExponential, lengthscale="scale", variance=("sigma", lambda s: s**2)),
        "Rough": rule(Matern52, lengthscale=("scale", twice)),
        "Total": combined(add, "parts"),
        "Times": combined(mul, "left", "right"),
        "Odd": power,
    },
    argument="covariance",
    columns=lambda kernel, d: kernel.columns,
    whole=("Total", "Times"),
)


def test_nested_combinations_see_their_own_columns():
    one, two = Gauss(scale=np.array([0.5]), sigma=1.5), Rough(scale=0.7, columns=(2,))
    translated = TABLE.translate(Times(left=Total(parts=[one, two]), right=two), 3)
    rough = Select(Matern52(1.4), [2])
    expected = Sum(SquaredExponential(0.5, 2.25), rough) * rough
    np.testing.assert_allclose(translated(X, X), expected(X, X), rtol=1e-14)
    assert not isinstance(TABLE.translate(two, 3, select=False), Select)


def test_refusals_name_the_library_and_what_it_calls_a_kernel():
    with pytest.raises(UnsupportedModelError, match="covariance: Small's Base is not supported"):
        TABLE.translate(Base(), 3)
    with pytest.raises(UnsupportedModelError, match=r"covariance: Odd of degree 1\.5 is not"):
        TABLE.translate(Odd(degree=1.5), 3)
    other = KernelTable("Small's", TABLE.rules, module="small.")
    with pytest.raises(UnsupportedModelError, match=r"kernel: .*test_translation\.Gauss is not"):
        other.translate(Gauss(), 3)
