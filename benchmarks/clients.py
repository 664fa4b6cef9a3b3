"""Explanations of a BayBE campaign by gpattr and by BayBE's own insight: time and memory a row.

    python benchmarks/clients.py [--rows 60] [--parameters 8]

Prints Markdown. Needs BayBE with its insights, `pip install "baybe[insights]"`. Each tool runs in a
process of its own, on the same campaign: numbers and one category, one target."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
from pages import digits, processor, table
from timing import best_time, peak_memory

SOLVENTS = ("water", "ethanol", "toluene")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=60, help="measurements of the campaign")
    parser.add_argument("--parameters", type=int, default=8)
    parser.add_argument("--explained", type=int, default=2, help="rows for BayBE's insight")
    parser.add_argument("--tool", choices=list(TOOLS), help="run one tool, and print JSON")
    options = parser.parse_args()
    if options.tool:
        warnings.simplefilter("ignore")
        campaign = made_campaign(options.rows, options.parameters)
        found = TOOLS[options.tool](campaign, options.explained)
        print(json.dumps(found | {"memory": peak_memory()}))
        return
    print(compared(options))


def compared(options: argparse.Namespace) -> str:
    """The whole page."""
    found = {tool: in_its_own_process(tool, options) for tool in TOOLS}
    ratio = found["insight"]["seconds"] / found["gpattr"]["seconds"]
    names = {
        "insight": f"BayBE's `SHAPInsight`, {options.explained} rows",
        "gpattr": f"gpattr, {options.rows} rows, with covariances",
        "Shapley": "gpattr, Shapley values over all measurements, without",
        "nothing": "(predictions alone)",
    }
    lines = [
        [
            name,
            f"{digits(1e3 * found[tool]['seconds'])} ms",
            f"{found[tool]['memory']:.2f} GB",
        ]
        for tool, name in names.items()
    ]
    size = f"{options.rows} × {options.parameters}"
    return (
        table([f"a campaign of {size}", "time a row", "memory of the process"], lines)
        + f"\n\ngpattr is {ratio:.0f} times as fast a row; from the campaign to the explanations of"
        + f" its {options.rows} rows it takes {digits(found['gpattr']['whole'])} s, the comparison"
        + f" with the model's own predictions included. {processor()}"
    )


def in_its_own_process(tool: str, options: argparse.Namespace) -> dict[str, float]:
    """Return what one tool measured."""
    size = ["--rows", str(options.rows), "--parameters", str(options.parameters)]
    command = [sys.executable, __file__, *size, "--explained", str(options.explained)]
    done = subprocess.run([*command, "--tool", tool], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def made_campaign(rows: int, parameters: int) -> Any:
    """Return a campaign with a trained surrogate."""
    import pandas as pd
    from baybe import Campaign
    from baybe.parameters import CategoricalParameter, NumericalContinuousParameter
    from baybe.recommenders import BotorchRecommender
    from baybe.searchspace import SearchSpace
    from baybe.targets import NumericalTarget

    rng = np.random.default_rng(0)
    numbers = [f"x{i}" for i in range(parameters - 1)]
    space = SearchSpace.from_product(
        [
            CategoricalParameter("solvent", values=list(SOLVENTS)),
            *(NumericalContinuousParameter(name, bounds=(0.0, 1.0)) for name in numbers),
        ]
    )
    frame = pd.DataFrame(rng.uniform(size=(rows, len(numbers))), columns=numbers)
    frame["solvent"] = rng.choice(SOLVENTS, rows)
    frame["yield"] = np.sin(3.0 * frame["x0"]) + frame["x1"] ** 2 + (frame["solvent"] == "water")
    campaign = Campaign(space, NumericalTarget("yield").to_objective(), BotorchRecommender())
    campaign.add_measurements(frame)
    campaign.get_surrogate()
    return campaign


def nothing(campaign: Any, explained: int) -> dict[str, float]:
    """Predict only: the memory that the campaign itself takes."""
    import shap  # noqa: F401

    import gpattr  # noqa: F401

    campaign.posterior_stats(campaign.measurements)
    return {"seconds": 0.0}


def insight(campaign: Any, explained: int) -> dict[str, float]:
    """Explain some rows by BayBE's own insight, with its defaults."""
    from baybe.insights import SHAPInsight

    names = [parameter.name for parameter in campaign.parameters]
    made = SHAPInsight.from_campaign(campaign)
    start = time.perf_counter()
    made.explain(campaign.measurements[names].iloc[:explained])
    return {"seconds": (time.perf_counter() - start) / explained}


def ours(campaign: Any, explained: int) -> dict[str, float]:
    """Explain all rows by integrated gradients with their covariances."""
    import gpattr

    names = [parameter.name for parameter in campaign.parameters]
    rows = campaign.measurements[names]
    gpattr.Explainer(campaign)(rows.iloc[:1])  # what is imported on first use
    start = time.perf_counter()
    explainer = gpattr.Explainer(campaign)
    explainer(rows)
    whole = time.perf_counter() - start
    return {"seconds": best_time(lambda: explainer(rows), 3) / len(rows), "whole": whole}


def the_same(campaign: Any, explained: int) -> dict[str, float]:
    """Explain some rows by what the insight estimates: Shapley values over all measurements."""
    import gpattr

    names = [parameter.name for parameter in campaign.parameters]
    rows = campaign.measurements[names]
    explainer = gpattr.Explainer(campaign, gpattr.Baselines(rows), attribution="shapley")
    some = rows.iloc[:explained]
    return {"seconds": best_time(lambda: explainer(some, None, "none"), 3) / len(some)}


TOOLS = {"nothing": nothing, "insight": insight, "gpattr": ours, "Shapley": the_same}

if __name__ == "__main__":
    main()
