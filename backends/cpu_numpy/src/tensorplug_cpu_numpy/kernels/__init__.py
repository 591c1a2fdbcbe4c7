"""The NumPy kernels, grouped by topic."""
