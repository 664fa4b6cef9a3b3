"""Training on Dask collections: rows stay in their partitions, and only sums over them travel."""
