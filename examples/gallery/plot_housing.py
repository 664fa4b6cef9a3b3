"""
What is a place worth?
======================

Two houses in New Taipei, one sold at nearly twice the price per area of the other: how much of that
is the place? Latitude and longitude cannot say it, each by itself; added up, with their covariance,
they can."""

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
# The price is a function of date, age, metro and stores, plus two functions of the place: of the
# district, and of the block, whose length-scale of 0.0005° (some 50 m) is fixed. Neighbours sell at
# like prices for reasons that no column holds.

house = Select(SquaredExponential(3 * frame.iloc[:, :4].std().to_numpy(), 100.0), [0, 1, 2, 3])
district = Select(SquaredExponential(0.03, 50.0), [4, 5])
block = Select(SquaredExponential(0.0005, 50.0), [4, 5])
model = gpattr.GPRegressor(
    house + district + block, bounds={"2__kernel__lengthscale": "fixed"}
).fit(frame, price)

# %%
# The baseline is house 25, which was sold at about the median price. House 167 is the dear one.

print(
    f"sold at {price[167]} and {price[25]}, expected {model.predict(frame.loc[[167, 25]]).round(1)}"
    " (10 000 TWD per ping)"
)
apart = gpattr.Explainer(model, baseline=frame.loc[25])(frame.loc[[167]])
together = apart.group({"place": [labels["latitude"], labels["longitude"]]})

fig, axes = plt.subplots(
    2, figsize=(7.5, 5.0), sharex=True, layout="constrained", height_ratios=[6, 5]
)
for ex, ax, title in zip(
    (apart, together), axes, ("Column by column", "Latitude and longitude as one"), strict=True
):
    ex.plot.bar(ax=ax)
    ax.set_title(title, loc="left", fontsize=11)
axes[0].set_xlabel("")
_ = axes[1].set_xlabel("attribution to the price (10 000 TWD per ping), with 95 % intervals")

# %%
# The straight way between the houses leads through blocks with few sales or none. How the price
# changes there is not known, and so neither is the share of each coordinate: what one gains the
# other loses. Their sum depends on the two ends only.

(i, j), place = (
    [apart.feature_names.index(labels[name]) for name in ("latitude", "longitude")],
    together[:, "place"],
)
print(
    "correlation of the two attributions:"
    f" {apart.cov[0, i, j] / (apart.std[0, i] * apart.std[0, j]):.2f}"
)
print(
    f"place: {place.values[0, 0]:+.1f} ± {place.std[0, 0]:.1f}, P(> 0) ="
    f" {place.prob_positive()[0, 0]:.3f}"
)

# %%
# All this is against house 25; against another it would be another sum. The distance to the metro
# and the stores nearby are matters of place as well: "place" is what it adds beyond the metro, and
# it has left nothing to the stores.
