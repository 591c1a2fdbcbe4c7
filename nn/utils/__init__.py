"""Helpers around modules and their parameters."""
