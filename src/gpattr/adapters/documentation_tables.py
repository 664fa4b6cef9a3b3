"""The table of supported libraries in the documentation, read from the registries."""

from __future__ import annotations

from importlib import import_module

from gpattr.adapters.registry import BUILT_IN

# Library: package, and module of its kernels.
LIBRARIES: dict[str, tuple[str, str]] = {
    "scikit-learn": ("sklearn", "scikit_learn.models"),
    "GPyTorch": ("gpytorch", "pytorch.kernels"),
    "BoTorch": ("botorch", "pytorch.kernels"),
    "GPJax": ("gpjax", "jax_models.gpjax_models"),
    "tinygp": ("tinygp", "jax_models.tinygp_models"),
    "GPflow": ("gpflow", "kriging.gpflow_models"),
    "SMT": ("smt", "kriging.smt_models"),
    "OpenTURNS": ("openturns", "kriging.openturns_models"),
    "PyMC": ("pymc", "kriging.pymc_models"),
    "GPy": ("GPy", "kriging.gpy_models"),
    "Emukit": ("emukit", "kriging.gpy_models"),
    "george": ("george", "kriging.george_models"),
}
TABLES = {"GPyTorch": "GPYTORCH", "BoTorch": "BOTORCH"}  # that share one
DIFFERENTIATED = ("GPyTorch", "BoTorch", "GPJax", "tinygp")
SHOWN = {"Emukit": "as GPy"}
# Optimiser: the packages of its classes (results of scikit-optimize are SciPy's), and its kernels.
OPTIMISERS: dict[str, tuple[tuple[str, ...], str]] = {
    "BayBE": (("baybe",), "as BoTorch"),
    "BoFire": (("bofire",), "as BoTorch"),
    "Ax": (("ax",), "as BoTorch"),
    "scikit-optimize": (("skopt", "scipy"), "as scikit-learn, and `HammingKernel`"),
    "Trieste": (("trieste",), "as GPflow"),
}
OF_OTHERS = {  # kernels that a library's table has for the sake of another
    "scikit-learn": ("HammingKernel",),
    "GPyTorch": ("IndexKernel", "PositiveIndexKernel"),
}
# Registered only for their error messages.
REFUSED = ("refused", "student")
BASES = ("Abstract", "Adapter")


def library_table() -> str:
    """Return a Markdown table: the supported models and kernels of each library."""
    lines = ["| library | models | kernels |", "|---|---|---|"]
    for library, (package, module) in LIBRARIES.items():
        kernels = import_module(f"gpattr.adapters.{module}")
        rules = getattr(kernels, TABLES.get(library, ""), kernels.KERNELS.rules)
        own = [name for name in rules if not name.startswith("_")]
        own = [name for name in own if name not in OF_OTHERS.get(library, ())]
        shown = SHOWN.get(library) or _listed(own)
        if library == "BoTorch":
            shown = f"as GPyTorch, {_listed([*own, *OF_OTHERS['GPyTorch']])}"
        others = ", any other by automatic differentiation" if library in DIFFERENTIATED else ""
        lines.append(f"| {library} | {_listed(models_of(package))} | {shown}{others} |")
    for optimiser, (packages, shown) in OPTIMISERS.items():
        models = [model for package in packages for model in models_of(package)]
        lines.append(f"| {optimiser} | {_listed(models)} | {shown} |")
    return "\n".join(lines)


def models_of(package: str) -> list[str]:
    """Return the supported classes of models of a package."""
    names = [
        name.partition(".")[2]
        for name, (_, function) in BUILT_IN.items()
        if name.startswith(f"{package}.") and function not in REFUSED
    ]
    return [name for name in names if not name.startswith(BASES)]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
