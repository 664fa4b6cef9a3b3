"""GPyTorch's own predictions without approximations, to compare with."""

import warnings
from contextlib import ExitStack, contextmanager

import gpytorch
import torch


@contextmanager
def exact_settings():
    """Exact linear algebra, float64 for what the library creates on the way, and no word about the
    jitter it adds.
    """
    before = torch.get_default_dtype()
    with ExitStack() as stack:
        stack.enter_context(gpytorch.settings.fast_computations(False, False, False))
        stack.enter_context(gpytorch.settings.max_cholesky_size(2**31))
        stack.enter_context(gpytorch.settings.fast_pred_var(False))
        stack.enter_context(gpytorch.settings.debug(False))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")
        torch.set_default_dtype(torch.float64)
        try:
            yield
        finally:
            torch.set_default_dtype(before)
