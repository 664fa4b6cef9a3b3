"""Distributions of attributions."""
