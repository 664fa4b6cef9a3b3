"""Optimisers: their models in the user's own parameters."""
