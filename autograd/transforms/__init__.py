"""Functional transforms: grad, vjp, jvp, Jacobians, and the levels at which they work."""
