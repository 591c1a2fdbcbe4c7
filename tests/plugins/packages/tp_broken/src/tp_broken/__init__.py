"""Breaks while it is imported."""

from tp_broken.driver import load

plugin = load()
