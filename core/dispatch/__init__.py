"""From the call of an op to a kernel: ops, dispatch keys, call caches, resolution, layers."""
