"""Quadrature of kernels without a closed form."""
