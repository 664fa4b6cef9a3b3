"""Foundations that know nothing of Gaussian processes: arrays, checks, memory, files."""
