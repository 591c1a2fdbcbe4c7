"""Ratios of tensorplug's times to PyTorch's."""
