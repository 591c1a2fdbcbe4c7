"""The ops of optimizers."""
