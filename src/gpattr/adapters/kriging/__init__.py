"""Libraries for Gaussian processes whose adapters are one file each."""
