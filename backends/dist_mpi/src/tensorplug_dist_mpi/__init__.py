"""Process groups for tensorplug by MPI, through mpi4py."""

from __future__ import annotations

from ._plugin import plugin

__all__ = ["plugin"]
