"""The steps of optimizers as ops over lists of tensors; :mod:`.fused` says what kernels are given."""
