"""Fitted models of other libraries as posteriors; a library's adapter is imported when one of its
models is seen.
"""

from gpattr.adapters.adapt import as_posterior
from gpattr.adapters.registry import Adapted, register_adapter

__all__ = ["Adapted", "as_posterior", "register_adapter"]
