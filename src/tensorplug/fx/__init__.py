"""Programs as graphs of calls: symbolic tracing, and what is done with its result, as ``torch.fx`` has it.

:func:`symbolic_trace` runs a module on proxies and returns a :class:`GraphModule`. It holds a :class:`Graph`
of the calls that were made, and runs again. A graph can be looked at, changed, interpreted and pickled.
"""

from __future__ import annotations

from .graph import CodeGen, Graph, PythonCode
from .graph_module import GraphModule
from .interpreter import Interpreter, Transformer
from .node import Node, has_side_effect, map_aggregate, map_arg
from .proxy import Proxy, TraceError
from .subgraph_rewriter import Match, ReplacedPatterns, replace_pattern
from .tracer import Tracer, symbolic_trace, wrap

__all__ = [
    "CodeGen",
    "Graph",
    "GraphModule",
    "Interpreter",
    "Match",
    "Node",
    "Proxy",
    "PythonCode",
    "ReplacedPatterns",
    "TraceError",
    "Tracer",
    "Transformer",
    "has_side_effect",
    "map_aggregate",
    "map_arg",
    "replace_pattern",
    "symbolic_trace",
    "wrap",
]
