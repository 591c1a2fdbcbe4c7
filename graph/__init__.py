"""Programs as graphs of ops: captured while they run, changed, and run again.

:func:`capture` runs a function or module once and returns a :class:`Graph` of the ops that it called. A graph
can be looked at, changed, pickled, and called like the program.
"""

from __future__ import annotations

from . import plugin as plugin  # isort: skip  # first: it registers the ops
from .capture import Recorder, Uncapturable, called, capture
from .compiled import Compiled
from .compiling import OptimizedModule, compile
from .explanations import Break, Explanation
from .graph import Graph
from .nodes import Node, Value
from .rewriting import Match, find, replace_pattern
from .stance import set_stance

__all__ = [
    "Break",
    "Compiled",
    "Explanation",
    "Graph",
    "Match",
    "Node",
    "OptimizedModule",
    "Recorder",
    "Uncapturable",
    "Value",
    "called",
    "capture",
    "compile",
    "find",
    "replace_pattern",
    "set_stance",
]
