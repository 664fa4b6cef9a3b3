"""Tests, a package: some libraries install one of the same name."""
