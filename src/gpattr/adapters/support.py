"""What is known of each library, read from the registry and the tables of kernels: the table in the
documentation.
"""

from __future__ import annotations

from importlib import import_module

from gpattr.adapters.registry import BUILT_IN

# library -> package, module of its kernels, the table there, and what the module knows besides
LIBRARIES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "scikit-learn": ("sklearn", "sklearn_kernels", "KERNELS", ()),
    "GPyTorch": ("gpytorch", "gpytorch_kernels", "FORWARD", ()),
    "BoTorch": ("botorch", "gpytorch_kernels", "FORWARD", ()),
    "GPJax": ("gpjax", "gpjax_models", "KERNELS", ("SumKernel", "ProductKernel")),
    "tinygp": ("tinygp", "tinygp_models", "KERNELS", ()),
    "GPflow": ("gpflow", "gpflow_models", "KERNELS", ("Sum", "Product")),
}


def library_table() -> str:
    """Return a Markdown table: the classes of models and of kernels that are known of each library."""
    lines = ["| library | models | kernels |", "|---|---|---|"]
    for library, (package, module, table, more) in LIBRARIES.items():
        models = models_of(package)
        kernels = [*getattr(import_module(f"gpattr.adapters.{module}"), table), *more]
        if library == "GPyTorch":
            kernels.remove("CategoricalKernel")  # BoTorch's
        shown = "as GPyTorch, and `CategoricalKernel`" if library == "BoTorch" else _listed(kernels)
        lines.append(f"| {library} | {_listed(models)} | {shown} |")
    return "\n".join(lines)


def models_of(package: str) -> list[str]:
    """Return the classes of models that are known of a package; abstract ones are there to say what
    they lack.
    """
    names = [name.partition(".")[2] for name in BUILT_IN if name.startswith(f"{package}.")]
    return [name for name in names if not name.startswith("Abstract")]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
