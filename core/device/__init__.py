"""Devices and dtypes, and what a device type supplies beside kernels."""
