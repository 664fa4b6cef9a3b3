"""``ex.plot``: the pictures of one explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpattr import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from gpattr.explanation.explanation import Explanation

OF_EXPLANATIONS = (
    "bar",
    "beeswarm",
    "covariance",
    "density",
    "heatmap",
    "path",
    "ranks",
    "scatter",
    "waterfall",
)


class Plots:
    """The pictures by name: ``ex.plot.waterfall(0)`` is ``gpattr.plots.waterfall(ex, 0)``."""

    def __init__(self, explanation: Explanation) -> None:
        self._explanation = explanation

    def __getattr__(self, name: str) -> Any:
        if name not in OF_EXPLANATIONS:
            raise AttributeError(
                f"no picture is called {name!r}; there are {', '.join(OF_EXPLANATIONS)}"
            )
        draw = getattr(plots, name)

        def drawn(*args: Any, **options: Any) -> Axes:
            return draw(self._explanation, *args, **options)

        drawn.__name__, drawn.__doc__ = name, draw.__doc__
        return drawn

    def __dir__(self) -> list[str]:
        return list(OF_EXPLANATIONS)

    def __repr__(self) -> str:
        return f"pictures: {', '.join(OF_EXPLANATIONS)}"
