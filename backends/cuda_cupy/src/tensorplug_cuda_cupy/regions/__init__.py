"""Fusers: parts of compiled programs in one kernel, or in one CUDA graph."""
