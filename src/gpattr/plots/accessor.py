"""``ex.plot``: the pictures of one explanation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from gpattr import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpattr.explanation.explanation import Explanation
    from gpattr.explanation.interactions import InteractionExplanation

OF_EXPLANATIONS = (
    "bar",
    "beeswarm",
    "covariance",
    "density",
    "heatmap",
    "parts",
    "path",
    "ranks",
    "scatter",
    "waterfall",
)


OF_INTERACTIONS = {"matrix": "interaction_matrix", "network": "interaction_network"}


class Plots:
    """The pictures by name: ``ex.plot.waterfall(0)`` is ``gpattr.plots.waterfall(ex, 0)``."""

    pictures: ClassVar[Mapping[str, str]] = {name: name for name in OF_EXPLANATIONS}

    def __init__(self, explanation: Explanation | InteractionExplanation) -> None:
        self._explanation = explanation

    def __getattr__(self, name: str) -> Any:
        if name not in self.pictures:
            raise AttributeError(
                f"no picture is called {name!r}; there are {', '.join(self.pictures)}"
            )
        draw = getattr(plots, self.pictures[name])

        def drawn(*args: Any, **options: Any) -> Axes:
            return draw(self._explanation, *args, **options)

        drawn.__name__, drawn.__doc__ = name, draw.__doc__
        return drawn

    def __dir__(self) -> list[str]:
        return list(self.pictures)

    def __repr__(self) -> str:
        return f"pictures: {', '.join(self.pictures)}"


class InteractionPlots(Plots):
    """The same of interactions: ``ex.plot.matrix(0)`` is ``plots.interaction_matrix(ex, 0)``."""

    pictures: ClassVar[Mapping[str, str]] = OF_INTERACTIONS
