"""The table of supported libraries in the documentation, read from the registries."""

from __future__ import annotations

from importlib import import_module

from gpattr.adapters.registry import BUILT_IN

# Library: package, module of its kernels, their table there, and further kernels.
LIBRARIES: dict[str, tuple[str, str, str, tuple[str, ...]]] = {
    "scikit-learn": ("sklearn", "sklearn_kernels", "KERNELS", ()),
    "GPyTorch": ("gpytorch", "gpytorch_kernels", "FORWARD", ()),
    "BoTorch": ("botorch", "gpytorch_kernels", "FORWARD", ()),
    "GPJax": ("gpjax", "gpjax_models", "KERNELS", ("SumKernel", "ProductKernel")),
    "tinygp": ("tinygp", "tinygp_models", "KERNELS", ()),
    "GPflow": ("gpflow", "gpflow_models", "KERNELS", ("Sum", "Product")),
}


def library_table() -> str:
    """Return a Markdown table: the supported models and kernels of each library."""
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
    """Return the supported classes of models of a package."""
    # Abstract classes are registered only for their error messages.
    names = [name.partition(".")[2] for name in BUILT_IN if name.startswith(f"{package}.")]
    return [name for name in names if not name.startswith("Abstract")]


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
