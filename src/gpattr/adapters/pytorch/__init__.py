"""Models of GPyTorch and BoTorch."""
