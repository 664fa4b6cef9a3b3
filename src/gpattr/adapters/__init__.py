"""Adapters: fitted models of other libraries as posteriors, each imported when first needed."""

from gpattr.adapters.adapt import as_posterior
from gpattr.adapters.registry import Adapted, register_adapter

__all__ = ["Adapted", "as_posterior", "register_adapter"]
