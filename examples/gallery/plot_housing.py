"""
How much is a location worth?
=============================

Two houses in New Taipei, one sold at nearly twice the price per area of the other: how much of that
is due to the location? The attributions of latitude and longitude are uncertain; their sum, which
takes their covariance into account, is not."""

import matplotlib.pyplot as plt

import gpattr
from gpattr.kernels import Select, SquaredExponential

houses = gpattr.datasets.load_taipei_housing()
labels = {
    name: f"{name} ({unit})" for name, unit in houses.units.items() if name != "transaction date"
}
frame = houses.frame.rename(columns=labels).sample(400, random_state=0)
price = frame.pop(labels["price per area"])

# %%
# The price is a function of date, age, metro and stores, plus two functions of the location: one
# for the district, and one for the block, whose length-scale of 0.0005° (about 50 m) is fixed.
# Neighbouring houses have similar prices for reasons that are not in the table.

house = Select(SquaredExponential(3 * frame.iloc[:, :4].std().to_numpy(), 100.0), [0, 1, 2, 3])
district = Select(SquaredExponential(0.03, 50.0), [4, 5])
block = Select(SquaredExponential(0.0005, 50.0), [4, 5])
model = gpattr.GPRegressor(
    house + district + block, bounds={"2__kernel__lengthscale": "fixed"}
).fit(frame, price)

# %%
# The baseline is house 25, which was sold at about the median price. House 167 is the expensive
# one.

print(
    f"sold at {price[167]} and {price[25]}, predicted"
    f" {model.predict(frame.loc[[167, 25]]).round(1)} (10 000 TWD per ping)"
)
apart = gpattr.Explainer(model, baseline=frame.loc[25])(frame.loc[[167]])
together = apart.group({"location": [labels["latitude"], labels["longitude"]]})

fig, axes = plt.subplots(
    2, figsize=(7.5, 5.0), sharex=True, layout="constrained", height_ratios=[6, 5]
)
for ex, ax, title in zip(
    (apart, together), axes, ("Column by column", "Latitude and longitude as one"), strict=True
):
    ex.plot.bar(ax=ax)
    ax.set_title(title, loc="left", fontsize=11, pad=18)
axes[0].set_xlabel("")
_ = axes[1].set_xlabel("attribution to the price (10 000 TWD per ping), with 95 % intervals")

# %%
# The straight path between the houses leads through blocks with few or no sales. The price there is
# uncertain, and so are the attributions of the coordinates: what one gains the other loses. Their
# sum depends on the two ends only.

(i, j), place = (
    [apart.feature_names.index(labels[name]) for name in ("latitude", "longitude")],
    together[:, "location"],
)
print(
    "correlation of the two attributions:"
    f" {apart.cov[0, i, j] / (apart.std[0, i] * apart.std[0, j]):.2f}"
)
print(
    f"location: {place.values[0, 0]:+.1f} ± {place.std[0, 0]:.1f}, P(> 0) ="
    f" {place.prob_positive()[0, 0]:.3f}"
)

# %%
# All this is relative to house 25; another baseline would give other sums. The distance to the
# metro and the number of stores nearby depend on the location as well: "location" is its effect
# beyond that of the metro, and leaves almost nothing to the stores.
