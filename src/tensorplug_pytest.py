"""Loads the options of the conformance suite, and only where pytest is asked to run it.

pytest imports this module in every run on a machine that has tensorplug, so it imports nothing itself.
"""

from __future__ import annotations

from typing import Any

SUITE = "tensorplug.testing.conformance"


def pytest_load_initial_conftests(early_config: Any, args: list[str]) -> None:
    """Load the suite's plugin if one of the arguments names the suite."""
    if any(argument.partition("::")[0].startswith(SUITE) for argument in args):
        early_config.pluginmanager.import_plugin(f"{SUITE}.plugin")
