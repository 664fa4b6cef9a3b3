"""The table of kernels in the documentation, read from the registries."""

from __future__ import annotations

import numpy as np

from gpattr import kernels
from gpattr.closed_forms.algebra import ALGEBRA
from gpattr.closed_forms.derivatives import DERIVATIVES, REFUSED
from gpattr.closed_forms.resolution import formulas_for
from gpattr.kernels import Kernel
from gpattr.operators import Gradient, IntegratedGradients, Shapley

SE = kernels.SquaredExponential()
EXAMPLES: dict[type[Kernel], Kernel] = {  # of kernels with required arguments
    kernels.FullAdditive: kernels.FullAdditive([SE] * 20, [1.0]),
    kernels.Function: kernels.Function(max, max, max),
    kernels.Polynomial: kernels.Polynomial(degree=2),
    kernels.Product: SE * kernels.Matern52(),
    kernels.Rescaled: kernels.Rescaled(SE, abs, abs),
    kernels.Warped: kernels.Warped(SE, abs, abs),
}
NOTES: dict[type[Kernel], str] = {
    kernels.Product: "; closed form if all parts are squared exponentials or polynomials",
}


PLAYERS = Shapley(np.zeros(20))  # more than can be enumerated
IN_WORDS = {
    "closed form": "closed form",
    "scale mixture": "scale mixture; enumeration up to 9 players",
    "permutations (64 antithetic pairs)": "enumeration; permutations beyond 12 players",
}


def support_table() -> str:
    """Return a Markdown table: how attributions of each kernel are computed."""
    lines = [
        "| kernel | gradient | integrated gradients | Shapley values | hyperparameters that are"
        " learned |",
        "|---|---|---|---|---|",
    ]
    for name in kernels.__all__:
        kind = getattr(kernels, name)
        if not (
            isinstance(kind, type)
            and issubclass(kind, Kernel)
            and (kind in DERIVATIVES or kind in REFUSED)
        ):
            continue
        learned = ", ".join(f"`{parameter}`" for parameter in kind.trainable) or "none of its own"
        lines.append(f"| `{name}` | {' | '.join(_methods(kind))} | {learned} |")
    return "\n".join(lines)


def _methods(kind: type[Kernel]) -> list[str]:
    """Return how gradients, integrated gradients and Shapley values of a kernel are computed."""
    if kind in ALGEBRA and kind not in (kernels.Categorical, kernels.Constant):
        return ["as its parts"] * 3
    if kind is kernels.White:
        return ["folded into the noise"] * 3
    if kind is kernels.Product:
        ours = "closed form if no part is radial on several features; otherwise as its parts"
        return [*_methods_of(EXAMPLES[kind], kind), ours]
    example = EXAMPLES.get(kind) or kind()
    (values,) = formulas_for(PLAYERS, example).methods
    if kind in REFUSED:
        return [*["not supported (not differentiable)"] * 2, IN_WORDS[values]]
    return [*_methods_of(example, kind), IN_WORDS[values]]


def _methods_of(example: Kernel, kind: type[Kernel]) -> list[str]:
    """Return how gradients and integrated gradients of a kernel are computed."""
    methods = [
        " + ".join(sorted(formulas_for(operator, example).methods))
        for operator in (Gradient(), IntegratedGradients(np.zeros(1)))
    ]
    return [methods[0], methods[1] + NOTES.get(kind, "")]
