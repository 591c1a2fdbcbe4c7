"""The steps of optimizers."""
