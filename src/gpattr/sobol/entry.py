"""The function `sobol_indices`: the indices of any model, by the best method there is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from gpattr._core.array import Array
from gpattr._core.memory import check_memory
from gpattr._core.randomness import RandomLike, random_generator
from gpattr._core.validation import Names, check_count, check_text
from gpattr.adapters import as_posterior
from gpattr.exceptions import InvalidIndexError, InvalidInputError, SeveralOutputsError
from gpattr.explainer.results import words
from gpattr.explanation.pairs import all_pairs, check_pairs
from gpattr.posteriors import Posterior
from gpattr.sobol.indices import Effects, SobolIndices, pooled_scatter
from gpattr.sobol.inputs import Distribution, Empirical, Inputs, read_inputs
from gpattr.sobol.product_effects import product_effects
from gpattr.sobol.quasi_random import (
    plug_in_effects,
    quasi_random_effects,
    rounding_of,
)

FEWEST_DRAWS = 100  # fewer do not give an interval
SMALLEST = 1e-70  # variance whose fourth power is a number
Subset = tuple[int, ...]


def sobol_indices(
    model: Any,
    inputs: Any = None,
    *,
    groups: Mapping[str, Iterable[str | int]] | None = None,
    pairs: bool | Sequence[Any] = False,
    output: str | None = None,
    n_draws: int = 1000,
    random_state: RandomLike = 0,
    feature_names: Sequence[str] | None = None,
    target_name: str | None = None,
) -> SobolIndices:
    """Return the features' shares of the variance of a model's function, with their posterior.

    For a classifier f is the log odds of a class.

    Parameters
    ----------
    model : estimator, posterior or model of another library
        Whatever `Explainer` takes.
    inputs : Uniform, Normal, dict or rows, optional
        The distribution of the features, which are independent: `gpattr.Uniform` or `gpattr.Normal`
        for all features; a dictionary {feature: Uniform, Normal or values}; rows, of which every
        feature is drawn by itself; or None for the training rows. Features that are missing in a
        dictionary are distributed as in the training rows. Values may be categories and dates.
    groups : {name: [features]}, optional
        Features that are treated as one.
    pairs : bool or list of pairs
        Whether to compute the indices of all pairs, or of those listed, by name or position.
    output : str, optional
        Chooses one output of a model with several.
    n_draws : int
        How many draws the spread of the indices comes from.
    random_state : int, Generator or None
        An integer fixes these draws.
    feature_names : sequence of str, optional
        The names of the columns of a model that was trained on an array.
    target_name : str, optional
        The name of the predicted quantity.

    Examples
    --------
    >>> import numpy as np
    >>> import gpattr
    >>> X = np.random.default_rng(0).normal(size=(30, 2))
    >>> model = gpattr.GPRegressor().fit(X, X[:, 0] - X[:, 1] ** 2)
    >>> indices = gpattr.sobol_indices(model, gpattr.Uniform(-1.0, 1.0))
    >>> indices.first.round(2)
    array([0.79, 0.21])
    """
    posterior, target = one_output(as_posterior(model), output)
    if target_name is not None and not check_text("target_name", target_name).strip():
        raise InvalidInputError(f"target_name: expected a name, got {target_name!r}")
    n_draws = check_count("n_draws", n_draws, least=FEWEST_DRAWS)
    generator = random_generator(random_state)
    reading = read_inputs(posterior, inputs, groups, feature_names)
    chosen = pairs_of(reading.players, pairs)
    subsets = subsets_of(len(reading.players), chosen)
    check_memory("n_draws: the draws", (n_draws, len(subsets)), "use fewer draws", copies=3)
    # What is not finite is refused.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        effects = varying_effects(posterior.in_columns, reading.inputs, subsets, n_draws, generator)
        require_variance(effects, posterior.in_columns, reading.inputs)
    what = words(posterior, "latent", target_name or target, output is not None)
    return SobolIndices(effects, reading.players, what, reading.words, tuple(chosen))


def one_output(posterior: Posterior, output: str | None) -> tuple[Posterior, str | None]:
    """Return the posterior of one output, and its name if there are several."""
    names = list(posterior.outputs)
    if not posterior.several_outputs:
        if output is not None:
            raise InvalidIndexError(
                f"output: the model has one output, which has no name, got {output!r}"
            )
        return posterior, None
    if output is None:
        raise SeveralOutputsError(
            f"output: the model has several outputs; choose one of {names}, got None"
        )
    if output not in names:
        raise InvalidIndexError(f"output: expected one of {names}, got {output!r}")
    return posterior.outputs[output], output


def pairs_of(players: Names, pairs: Any) -> list[tuple[int, int]]:
    """Return the requested pairs of players, as positions in increasing order."""
    if isinstance(pairs, (bool, np.bool_)):
        return [pair for pair in all_pairs(len(players)) if pairs and pair[0] != pair[1]]
    chosen = check_pairs(pairs, players)
    for i, j in chosen:
        if i == j:
            raise InvalidInputError(
                f"pairs: expected pairs of two different features, got {players[i]!r} twice"
            )
    return list(chosen)


def subsets_of(P: int, pairs: Sequence[tuple[int, int]] = ()) -> tuple[Subset, ...]:
    """Return the sets of players whose variances the indices are made of, without the empty one."""
    whole = tuple(range(P))
    others = [tuple(i for i in whole if i != player) for player in whole]
    found = [*((i,) for i in whole), *others, whole, *pairs]
    return tuple(dict.fromkeys(subset for subset in found if subset))


def varying_effects(
    posterior: Posterior,
    inputs: Inputs,
    subsets: tuple[Subset, ...],
    n_draws: int,
    generator: np.random.Generator,
) -> Effects:
    """Return V_S, in which players that do not vary count for nothing, exactly."""
    fixed = [
        player
        for player, members in enumerate(inputs.members)
        if all(_constant(inputs.distributions[i]) for i in members)
    ]
    whole = tuple(range(inputs.n_players))
    if len(fixed) == len(whole):
        raise InvalidInputError(
            "inputs: expected at least one feature that varies, got one value for each of them:"
            " there is no variance to share out"
        )

    def reduced(subset: Subset) -> Subset:
        kept = tuple(i for i in subset if i not in fixed)
        return whole if len(kept) + len(fixed) == len(whole) else kept

    needed = tuple(dict.fromkeys(reduced(subset) for subset in subsets if reduced(subset)))
    found = effects_of(posterior, inputs, needed, n_draws, generator)
    if needed == subsets:
        return found
    # The last column, of zeros, is for subsets in which nothing varies.
    places = [needed.index(reduced(subset)) if reduced(subset) else -1 for subset in subsets]

    def spread(array: Array) -> Array:
        return np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, 1)])[..., places]

    return Effects(
        subsets,
        spread(found.plug_in),
        spread(found.expected),
        spread(found.draws),
        spread(found.error),
        found.method,
        None if found.replicates is None else spread(found.replicates),
        None if found.plug_in_replicates is None else spread(found.plug_in_replicates),
    )


def _constant(distribution: Distribution) -> bool:
    return isinstance(distribution, Empirical) and len(distribution.values) == 1


def effects_of(
    posterior: Posterior,
    inputs: Inputs,
    subsets: tuple[Subset, ...],
    n_draws: int,
    generator: np.random.Generator,
    share: float = 1.0,
) -> Effects:
    """Return V_S by the best method; of a mixture, the mixture of its models' V_S.

    A model of a mixture gets its ``share`` of the work.
    """
    parts = posterior.components
    if len(parts) == 1:
        exact = product_effects(posterior, inputs, subsets, n_draws, generator, share)
        if exact is not None:
            return exact
        return quasi_random_effects(posterior, inputs, subsets, n_draws, generator, share)
    found, reached, taken = [], 0.0, 0
    for weight, part in parts:
        reached += weight
        count = int(reached * n_draws + 1e-6) - taken
        taken += count
        own = effects_of(part, inputs, subsets, max(count, 1), generator, weight)
        found.append((weight, own, own.draws[:count]))
    plug_in, error = plug_in_effects(posterior, inputs, subsets, generator)
    expected = np.sum([weight * own.expected for weight, own, _ in found], axis=0)
    scattered = [(w, own.replicates) for w, own, _ in found if own.replicates is not None]
    bounds = [w * own.error for w, own, _ in found if own.replicates is None]
    own_error = np.sum(bounds, axis=0) + (pooled_scatter(scattered) if scattered else 0.0)
    rounding = rounding_of(posterior, inputs, float(expected.max()), generator)
    # Without the number of points, which differs.
    names = " + ".join(dict.fromkeys(own.method.partition(" (")[0] for _, own, _ in found))
    return Effects(
        subsets,
        plug_in,
        expected,
        np.concatenate([draws for _, _, draws in found]),
        np.maximum(error, own_error) + rounding,
        f"mixture of {len(found)} models; {names}",
    )


def require_variance(effects: Effects, posterior: Posterior, inputs: Inputs) -> None:
    """Refuse indices of a function that does not vary, or by no more than rounding."""
    whole = effects.subsets.index(tuple(range(inputs.n_players)))
    V, error = float(effects.expected[whole]), float(effects.error[whole])
    floor = max(error, rounding_of(posterior, inputs, V, np.random.default_rng(0)))
    if not abs(V) < 1.0 / SMALLEST or 0.0 < V < SMALLEST:
        raise InvalidInputError(
            f"model: expected a function whose variance is between {SMALLEST:.0e} and"
            f" {1.0 / SMALLEST:.0e}, got {V:.0e}; use other units for the target"
        )
    if not floor < V:
        raise InvalidInputError(
            f"inputs: the model's function hardly varies over these inputs; its variance is"
            f" {V:.1e}, with a numerical error of {floor:.1e}, and cannot be split among the"
            " features"
        )
