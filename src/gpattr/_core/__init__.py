"""Foundations independent of Gaussian processes: arrays, checks, memory, files."""
