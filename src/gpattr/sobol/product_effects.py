"""Variances of conditional expectations for kernels that are sums of products over features.

Closed forms where their rounding allows, values at nodes elsewhere; see `quadratic_forms`,
`node_forms` and `conditioning`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from gpattr._core.array import Array, is_tensor, product, to_numpy
from gpattr.means import Constant, Expansion, Mean, Zero
from gpattr.posteriors import EncodedPosterior, FunctionSpacePosterior, Posterior
from gpattr.posteriors.affine import AffinePosterior
from gpattr.posteriors.function_space import Trend
from gpattr.posteriors.wrapper import WrapperPosterior
from gpattr.sobol.indices import Effects
from gpattr.sobol.inputs import Inputs
from gpattr.sobol.node_forms import mean_squares, mixture_squares, node_forms
from gpattr.sobol.quadratic_forms import Form, Subset, quadratic_forms
from gpattr.sobol.sections import Conditioning, Sections, drawn_sites
from gpattr.sobol.terms import terms_of

TOLERATED = 1e-6  # error of what is unknown, of V: a tenth of a promille of a spread of 1 %
SPREAD = 1e-2  # error of drawn variances, of their standard deviation
PRECISE = 1e-9  # error of V_S of the posterior mean, of V, beyond which digits are doubled
WORK = 2e9  # entries of tables of pairs of terms, beyond which other ways are quicker


def product_effects(
    posterior: Posterior,
    inputs: Inputs,
    subsets: Sequence[Subset],
    n_draws: int,
    generator: np.random.Generator,
    share: float = 1.0,
) -> Effects | None:
    """Return the effects of subsets of players.

    None where the kernel is no sum of products, or of so many that other ways are quicker.
    ``share`` is the part of the quasi-random points for one model of a mixture: its weight.
    """
    subsets = tuple(tuple(subset) for subset in subsets)
    weights, states = [], []
    for weight, part in posterior.components:
        state = conditioned(part, inputs, generator)
        if state is None:
            return None
        weights.append(weight)
        states.append(state)
    counts = generator.multinomial(n_draws, weights) if len(weights) > 1 else [n_draws]
    parts = []
    for state, count in zip(states, counts, strict=True):
        found = _forms(state, subsets, generator, share)
        if found is None:
            return None
        parts.append(_effects(*found, subsets, int(count), generator, state))
    return parts[0] if len(parts) == 1 else _mixture(parts, np.array(weights), states, generator)


def _mixture(
    parts: list[Effects], weights: Array, states: list[Conditioning], generator: np.random.Generator
) -> Effects:
    """Return the effects of a mixture of posteriors, whose mean function is the mean of theirs."""
    subsets = parts[0].subsets
    plug_in, error = mixture_squares(states, weights, subsets, generator)
    draws = np.concatenate([part.draws for part in parts])
    return Effects(
        subsets,
        plug_in,
        weights @ np.stack([part.expected for part in parts]),
        generator.permutation(draws),
        np.maximum(error, weights @ np.stack([part.error for part in parts])),
        " and ".join(dict.fromkeys(part.method for part in parts)),
    )


def conditioned(
    posterior: Posterior, inputs: Inputs, generator: np.random.Generator
) -> Conditioning | None:
    """Return a posterior with the sites of its draws; None where it is of another kind."""
    found = unwrapped(posterior, inputs)
    if found is None:
        return None
    inner, inputs = found
    terms = terms_of(inner.kernel, inputs)
    if terms is None:
        return None
    groups = drawn_sites(inputs, generator)
    points = np.concatenate([inner.inputs, *(rows for rows, _ in groups)])
    sections = Sections(terms, inputs, points)
    data = sections.sites(inner.inputs, sections.everything)
    return Conditioning(inner, sections, data, tuple(sections.sites(*group) for group in groups))


def unwrapped(posterior: Posterior, inputs: Inputs) -> tuple[FunctionSpacePosterior, Inputs] | None:
    """Return the posterior behind maps of inputs, with the inputs it sees."""
    while isinstance(posterior, WrapperPosterior):
        if isinstance(posterior, AffinePosterior):
            inputs = inputs.in_units(posterior.units)
        elif not isinstance(posterior, EncodedPosterior):
            return None
        posterior = posterior.posterior
    if not isinstance(posterior, FunctionSpacePosterior) or not _constant(posterior):
        return None
    return _on_host(posterior), inputs


def _constant(posterior: FunctionSpacePosterior) -> bool:
    """Return whether the prior mean is a constant, known or not: variances do not see it."""
    mean: Mean = posterior.mean
    if isinstance(mean, Expansion):
        return not np.asarray(mean.basis.powers).any()
    return isinstance(mean, (Zero, Constant)) and posterior.trend is None


def _on_host(posterior: FunctionSpacePosterior) -> FunctionSpacePosterior:
    if not is_tensor(posterior.inputs):
        return posterior
    trend = posterior.trend
    if trend is not None:
        trend = Trend(trend.basis, to_numpy(trend.weights), to_numpy(trend.root))
    return FunctionSpacePosterior(
        posterior.kernel,
        to_numpy(posterior.inputs),
        to_numpy(posterior.alpha),
        to_numpy(posterior.factor),
        None if posterior.root is None else to_numpy(posterior.root),
        None if posterior.column_scale is None else to_numpy(posterior.column_scale),
        posterior.mean,
        trend=trend,
    )


def _forms(
    state: Conditioning,
    subsets: tuple[Subset, ...],
    generator: np.random.Generator,
    share: float,
) -> tuple[list[Form], str] | None:
    """Return the forms of subsets, and in words how they were found; None where it takes long."""
    T, n = len(state.sections.terms.terms), len(state.data) + sum(map(len, state.groups))
    if T > 1 and T * (T + 1) * n * n * (state.sections.inputs.n_players + len(subsets)) > WORK:
        return None
    forms = list(quadratic_forms(state, subsets))
    whole = max(form.matrix[0, 0] + max(form.unknown, 0.0) for form in forms)
    poor = [i for i, form in enumerate(forms) if _poor(form, whole)]
    some = [subsets[i] for i in poor]
    by_nodes = node_forms(state, some, generator, share) if poor else []
    for i, form in zip(poor, by_nodes, strict=True):
        if form.draw_error + form.unknown_error < forms[i].draw_error + forms[i].unknown_error:
            kept = min(form, forms[i], key=lambda found: found.error)
            forms[i] = form.with_mean(float(kept.matrix[0, 0]), kept.error)
    if any(form.error > PRECISE * whole for form in forms):
        squares = mean_squares(state, subsets)
        if squares is not None:
            forms = [
                form if form.error <= error else form.with_mean(float(value), float(error))
                for form, value, error in zip(forms, squares.values, squares.error, strict=True)
            ]
    words = ["closed form"] if len(poor) < len(subsets) else []
    words += ["closed-form averages at quadrature nodes"] if poor else []
    return forms, " and ".join(words)


def _poor(form: Form, whole: float) -> bool:
    """Return whether rounding affects the unknown part, or draws, of a function's variance."""
    H = form.matrix
    spread = float(4.0 * (H[0, 1:] ** 2).sum() + 2.0 * (H[1:, 1:] ** 2).sum()) ** 0.5
    drawn = max(TOLERATED * whole, SPREAD * spread)
    return not (form.unknown_error <= TOLERATED * whole and form.draw_error <= drawn)


def _effects(
    forms: list[Form],
    method: str,
    subsets: tuple[Subset, ...],
    n_draws: int,
    generator: np.random.Generator,
    state: Conditioning,
) -> Effects:
    """Return the effects of quadratic forms, the last columns of which are of the trend."""
    q = len(forms[0].matrix)
    known = q - state.trend.shape[1]
    c = np.concatenate([np.ones((n_draws, 1)), generator.standard_normal((n_draws, q - 1))], axis=1)
    plug_in = np.array([form.matrix[0, 0] for form in forms])
    trend = np.array([form.matrix.diagonal()[known:].sum() for form in forms])
    expected = plug_in + np.array([form.unknown for form in forms]) + trend
    draws = np.empty((n_draws, len(forms)))
    for i, form in enumerate(forms):
        rest = max(form.unknown - float(form.matrix.diagonal()[1:known].sum()), 0.0)
        draws[:, i] = np.einsum("rq,rq->r", product(c, form.matrix), c) + rest
    error = np.array([form.error + form.unknown_error for form in forms])
    return Effects(subsets, plug_in, expected, draws, error, method)
