"""Kernels of their own: what CuPy lacks, has with other results, or does in more passes than one."""
