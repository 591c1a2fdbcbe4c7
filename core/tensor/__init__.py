"""The Tensor class: its state, operators and methods, and how it meets the host."""
