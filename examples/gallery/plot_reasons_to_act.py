"""
Exploit or explore, and what to measure next
============================================

An optimiser looks for the best values of three settings of a machine, whose output is known here,
but not to the optimiser. At every step the *reason* for its suggestion is explained: does it expect
much there (exploit), or does it know little (explore), and which setting is it about? Then the sign
of one reason is in doubt, and one more measurement, chosen for that, settles it."""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import gpattr
from gpattr import quantities

names = ["speed", "feed", "angle"]
rng = np.random.default_rng(4)


def output(X):
    """Return the true output; the best is 2.0, at 0.7, 0.35 and 0.6."""
    speed, feed, angle = np.asarray(X).T
    peak = 2.0 * np.exp(-8.0 * (speed - 0.7) ** 2 - 12.0 * (feed - 0.35) ** 2)
    return peak - 0.4 * (angle - 0.6) ** 2


def machine(X):
    """Return the output, measured to ± 0.05."""
    return output(X) + rng.normal(0, 0.05, len(X))


def somewhere(n):
    """Return n random settings."""
    return pd.DataFrame(rng.uniform(size=(n, 3)), columns=names)


# %%
# Six measurements to begin with, then ten suggestions. Each is the one of 2000 random settings with
# the largest upper confidence bound, and is compared with the best setting so far.

X = somewhere(6)
y = machine(X)
limits = {"lengthscale": (0.1, 2.0)}
reasons = []
for step in range(1, 11):
    model = gpattr.GPRegressor(noise_variance=0.05**2, bounds=limits).fit(X, y)
    candidates = somewhere(2000)
    mean, std = model.predict(candidates, return_std=True)
    new = candidates.iloc[[np.argmax(mean + 2.0 * std)]].set_axis([f"Step {step}"])
    explainer = gpattr.Explainer(
        model,
        X.iloc[[np.argmax(y)]],
        quantity=quantities.UpperConfidenceBound(2.0),
        baseline_name="best so far",
        target_name="output",
    )
    ex = explainer(new)
    X, y, reasons = pd.concat([X, new]), np.append(y, machine(new)), [*reasons, ex]
    shares = {name: part.values.sum() for name, part in ex.parts.items()}
    about = names[np.abs(ex.values[0]).argmax()]
    print(
        f"{ex.row_names[0]:7}: exploit {shares['exploit']:+.2f}, explore {shares['explore']:+.2f},"
        f" mostly for its {about:5}; measured {y[-1]:.2f}, best {y.max():.2f}"
    )

# %%
# Most suggestions explore: what could be learned there outweighs some loss of expected output. The
# last two are about nothing much any more, which is when to stop. Here are the fourth and the last:

fig, axes = plt.subplots(2, figsize=(7.5, 7.0), layout="constrained")
for ex, ax in zip((reasons[3], reasons[-1]), axes, strict=True):
    ex.plot.parts(ax=ax)

# %%
# Halfway, after six suggestions, somebody asks what the speed of the best run did for the output,
# compared with a speed of 0.5. The model of that time could not tell:

model = gpattr.GPRegressor(noise_variance=0.05**2, bounds=limits).fit(X[:12], y[:12])
best = X[:12].iloc[[np.argmax(y[:12])]].set_axis(["best"])
slower = best.assign(speed=0.5)
explainer = gpattr.Explainer(model, slower, target_name="output", baseline_name="speed 0.5")
print(explainer(best)[:, "speed"])

# %%
# Where would one measurement tell most about this? The intervals after it are known beforehand,
# and so is the chance that the sign will be settled.

candidates = somewhere(300).set_axis([f"candidate {i}" for i in range(300)])
told = explainer.measure_next(candidates, best, feature="speed")
_ = told.plot(max_display=5)

# %%
# The measurement is made. The standard deviation falls to what was predicted, whatever the outcome;
# a random candidate would have told less. The true effect, known here only, is printed last.

first = told.best(1).names[0]
for name in (first, "candidate 0"):
    at = candidates.loc[[name]]
    after = gpattr.as_posterior(model).condition_on(at, machine(at))
    known = gpattr.Explainer(after, slower)(best)[:, "speed"]
    place = list(candidates.index).index(name)
    print(
        f"{name:13}: {known.values[0, 0]:+.2f} ± {known.std[0, 0]:.2f} (predicted"
        f" ± {told.std_after[place, 0]:.2f}), P(> 0) = {known.prob_positive()[0, 0]:.3f}"
    )
print(f"true effect  : {output(best)[0] - output(slower)[0]:+.2f}")
