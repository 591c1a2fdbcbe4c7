"""NVIDIA's libraries of kernels: cuBLAS, cuBLASLt and cuDNN."""
