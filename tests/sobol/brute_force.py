"""Variances of conditional expectations from a model's joint predictions on a product grid."""

import numpy as np

from gpattr._core.array import to_numpy


def grid(inputs, count):
    """Return rows (K, columns), weights (K,), and the node of each row by distribution, (K, D)."""
    rules = [part.nodes(count) for part in inputs.distributions]
    places = np.indices([len(weights) for _, weights in rules]).reshape(len(rules), -1).T
    X = np.zeros((len(places), inputs.n_columns))
    weights = np.ones(len(places))
    for i, (values, own) in enumerate(rules):
        X[:, list(inputs.columns[i])] = values[places[:, i]]
        weights *= own[places[:, i]]
    return X, weights, places


def form(inputs, weights, places, subset):
    """Return Q with V_S = fᵀQf for values f on the grid: Var E[f | x_S], by sums."""
    D = [i for i, owner in enumerate(inputs.owner) if owner in subset]
    _, group = np.unique(places[:, D], axis=0, return_inverse=True)
    group = group.ravel()
    mass = np.bincount(group, weights)
    # E[f | x_S] = Ef with one row for each value of x_S.
    E = np.zeros((len(mass), len(weights)))
    E[group, np.arange(len(weights))] = weights / mass[group]
    return E.T @ (mass[:, None] * E) - np.outer(weights, weights)


def moments_of_effects(posterior, inputs, subsets, count=8):
    """Return V_S of the mean, and mean and standard deviation of V_S, (k,) each."""
    X, weights, places = grid(inputs, count)
    mean, C = posterior.predict(X, return_cov=True)
    mean, C = to_numpy(mean), to_numpy(C)
    plug_in, expected, std = [], [], []
    for subset in subsets:
        Q = form(inputs, weights, places, subset)
        QC = Q @ C
        plug_in.append(mean @ Q @ mean)
        expected.append(plug_in[-1] + np.trace(QC))
        std.append(np.sqrt(4 * mean @ QC @ Q @ mean + 2 * (QC * QC.T).sum()))
    return np.array(plug_in), np.array(expected), np.array(std)
