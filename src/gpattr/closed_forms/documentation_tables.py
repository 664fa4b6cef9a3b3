"""The table of kernels in the documentation, read from the registries."""

from __future__ import annotations

import numpy as np

from gpattr import kernels
from gpattr.closed_forms.algebra import ALGEBRA
from gpattr.closed_forms.derivatives import DERIVATIVES, REFUSED
from gpattr.closed_forms.resolution import formulas_for
from gpattr.kernels import Kernel
from gpattr.operators import Gradient, IntegratedGradients

SE = kernels.SquaredExponential()
EXAMPLES: dict[type[Kernel], Kernel] = {  # of kernels with required arguments
    kernels.FullAdditive: kernels.FullAdditive([SE], [1.0]),
    kernels.Function: kernels.Function(max, max, max),
    kernels.Polynomial: kernels.Polynomial(degree=2),
    kernels.Product: SE * kernels.Matern52(),
    kernels.Rescaled: kernels.Rescaled(SE, abs, abs),
    kernels.Warped: kernels.Warped(SE, abs, abs),
}
NOTES = {
    kernels.Product: "; closed form if all parts are squared exponentials or polynomials",
    kernels.White: "; folded into the noise",
}


def support_table() -> str:
    """Return a Markdown table: how (integrated) gradients of each kernel are computed."""
    lines = [
        "| kernel | gradient | integrated gradients | hyperparameters that are learned |",
        "|---|---|---|---|",
    ]
    for name in kernels.__all__:
        kind = getattr(kernels, name)
        if not (
            isinstance(kind, type)
            and issubclass(kind, Kernel)
            and (kind in DERIVATIVES or kind in REFUSED)
        ):
            continue
        if kind in REFUSED:
            methods = ["not supported (not differentiable)"] * 2
        elif kind in ALGEBRA and kind is not kernels.Constant:
            methods = ["as its parts"] * 2
        else:
            example = EXAMPLES.get(kind) or kind()
            methods = [
                " + ".join(sorted(formulas_for(operator, example).methods))
                for operator in (Gradient(), IntegratedGradients(np.zeros(1)))
            ]
        learned = ", ".join(f"`{parameter}`" for parameter in kind.trainable) or "none of its own"
        lines.append(f"| `{name}` | {methods[0]} | {methods[1]}{NOTES.get(kind, '')} | {learned} |")
    return "\n".join(lines)
