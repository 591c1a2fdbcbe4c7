"""Backward: derivatives, the programs made of their formulas, and the engine that runs them."""
