"""The modules, grouped by topic."""
