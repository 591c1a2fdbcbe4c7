"""``torch.compile``, ``torch.jit`` and ``torch._dynamo``.

Compilers change how a program runs, not what it computes: ``torch.compile`` is :func:`tensorplug.compile`,
and what asks for scripts gets the program itself.
"""

from __future__ import annotations

import builtins
import weakref
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from tensorplug import export, graph
from tensorplug.core.dispatch.layers import active_layers
from tensorplug.graph import OptimizedModule, Recorder
from tensorplug.nn import Module


def as_it_is(obj: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return a function or module as it is; with options alone, a decorator that does."""
    if obj is None:
        return lambda function: function
    return obj


def no_op_decorator(*args: Any, **kwargs: Any) -> Any:
    """Return a decorator that leaves its function as it is."""
    return as_it_is


def no(*args: Any, **kwargs: Any) -> bool:
    """Return False, whatever is asked."""
    return False


def nothing(*args: Any, **kwargs: Any) -> None:
    """Do nothing."""


def compile(model: Any = None, **options: Any) -> Any:
    """Compile a function or a module; backends that are not ours run the program as it is."""
    if model is None:
        return lambda given: compile(given, **options)
    backend = options.get("backend", "inductor")
    known = isinstance(backend, str) and backend in ("inductor", "aot_eager", "cudagraphs")
    return graph.compile(
        model,
        fullgraph=bool(options.get("fullgraph")),
        dynamic=options.get("dynamic"),
        backend=backend if known else "eager",
        disable=bool(options.get("disable")),
    )


def _explain(function: Any) -> Any:
    """Return what calls a function once and tells what was captured."""

    def call(*args: Any, **kwargs: Any) -> Any:
        compiled = graph.compile(function)
        compiled(*args, **kwargs)
        return compiled.explain()

    return call


class _Function(Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.forward = function


#: What was traced, and with which arguments: these ``torch.jit.save`` exports it with.
_traced: weakref.WeakKeyDictionary[Any, tuple[tuple[Any, ...], dict[str, Any]]] = (
    weakref.WeakKeyDictionary()
)


def _trace(
    func: Any,
    example_inputs: Any = None,
    *args: Any,
    example_kwarg_inputs: Any = None,
    **options: Any,
) -> Any:
    """Return a function or module as it is, and keep the arguments for ``torch.jit.save``."""
    given = example_inputs if isinstance(example_inputs, tuple) else (example_inputs,)
    if example_inputs is None:
        given = ()
    _traced[func] = given, dict(example_kwarg_inputs or {})
    return func


def _save(m: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """Export what was traced, with the arguments of that, and save it."""
    found = _traced.get(m)
    if found is None:
        raise NotImplementedError(
            "torch.jit.save: tensorplug saves what torch.jit.trace was given; what torch.jit.script was "
            "given needs arguments: tp.export.save(tp.export.export(module, args), file)"
        )
    module = m if isinstance(m, Module) else _Function(m)
    export.save(export.export(module, *found), f)


def _load(f: Any, *args: Any, **kwargs: Any) -> Any:
    """Return a module that runs a saved program."""
    return export.load(f).module()


class ScriptModule(Module):
    """The class that torch gives scripted modules; here none has it, scripting returns what it gets."""


class ScriptFunction:
    """The class that torch gives scripted functions; here none has it."""


class Attribute(NamedTuple):
    """A value and its type, for a scripted module."""

    value: Any
    type: Any


class TracerWarning(Warning):
    """Torch's warning that a trace does not hold what the program does; here it is never given."""


def _annotate(the_type: Any, the_value: Any) -> Any:
    return the_value


_SCRIPT: dict[str, Any] = {
    **dict.fromkeys(
        ("export", "freeze", "ignore", "interface", "optimize_for_inference", "script",
         "script_if_tracing", "trace_module", "unused"),
        as_it_is,
    ),
    "load": _load,
    "save": _save,
    "trace": _trace,
    **dict.fromkeys(("is_scripting", "is_tracing", "onednn_fusion_enabled"), no),
    **dict.fromkeys(("enable_onednn_fusion", "set_fusion_strategy"), nothing),
    "Attribute": Attribute,
    "Error": RuntimeError,
    "Final": Final,
    "RecursiveScriptModule": ScriptModule,
    "ScriptFunction": ScriptFunction,
    "ScriptModule": ScriptModule,
    "TracerWarning": TracerWarning,
    "annotate": _annotate,
    "fork": lambda function, *args, **kwargs: function(*args, **kwargs),
    "isinstance": builtins.isinstance,
    "script_method": as_it_is,
    "wait": as_it_is,
    "_overload": as_it_is,
    "_overload_method": as_it_is,
    "_script_if_tracing": as_it_is,
    "_unwrap_optional": as_it_is,
}  # fmt: skip


def is_exporting() -> bool:
    """Return whether a program is captured that must not depend on data; the others may, and are guarded."""
    return any([isinstance(layer, Recorder) and not layer.follow for layer in active_layers()])


_DYNAMO: dict[str, Any] = {
    **dict.fromkeys(
        ("allow_in_graph", "assume_constant_result", "disable", "disallow_in_graph", "forbid_in_graph",
         "nonstrict_trace", "substitute_in_graph"),
        as_it_is,
    ),
    **dict.fromkeys(
        ("graph_break", "mark_dynamic", "mark_static", "mark_static_address", "maybe_mark_dynamic",
         "reset"),
        nothing,
    ),
    "explain": _explain,
    "list_backends": lambda *args, **kwargs: [],
    "is_compiling": no,
    "OptimizedModule": OptimizedModule,
}  # fmt: skip


@contextmanager
def unchanged(*args: Any, **kwargs: Any) -> Generator[None, None, None]:
    """Stand for a change of settings that nothing reads."""
    yield


#: Settings that programs read; any other can be set.
_SETTINGS: dict[str, Any] = {
    **dict.fromkeys(
        ("capture_dynamic_output_shape_ops", "capture_scalar_outputs", "optimize_ddp",
         "skip_fwd_side_effects_in_bwd_under_checkpoint", "suppress_errors", "verbose"),
        False,
    ),
    **dict.fromkeys(("cache_size_limit", "accumulated_cache_size_limit", "recompile_limit"), 8),
    "automatic_dynamic_shapes": True,
    "patch": unchanged,
}  # fmt: skip


class _ListOfNumbers:
    """``BroadcastingList2[int]`` and its like, in annotations."""

    def __getitem__(self, item: Any) -> Any:
        return list[item]


ADDITIONS: dict[str, dict[str, Any]] = {
    "torch": {"compile": compile, "ScriptModule": ScriptModule},
    "torch.compiler": {
        **dict.fromkeys(
            ("allow_in_graph", "assume_constant_result", "disable", "nested_compile_region"), as_it_is
        ),
        **dict.fromkeys(("is_compiling", "is_dynamo_compiling", "is_exporting"), is_exporting),
        **dict.fromkeys(("cudagraph_mark_step_begin", "reset"), nothing),
        "compile": compile,
        "set_stance": graph.set_stance,
        "list_backends": lambda *args, **kwargs: [],
        "substitute_in_graph": no_op_decorator,
    },
    "torch._dynamo": _DYNAMO,
    "torch._dynamo._trace_wrapped_higher_order_op": {"TransformGetItemToIndex": unchanged},
    "torch._dynamo.config": _SETTINGS,
    "torch.nn.attention.flex_attention": {"_DEFAULT_SPARSE_BLOCK_SIZE": 128},
    "torch._dynamo.decorators": _DYNAMO,
    "torch._dynamo.eval_frame": {"OptimizedModule": OptimizedModule, "is_dynamo_supported": no},
    "torch._dynamo.exc": {
        "TensorifyScalarRestartAnalysis": RuntimeError, "TorchDynamoException": RuntimeError,
        "Unsupported": NotImplementedError,
    },
    "torch._dynamo.external_utils": {"is_compiling": no},
    "torch._dynamo.utils": {"is_compile_supported": no},
    "torch._logging": {"set_logs": nothing},
    "torch._functorch.config": {"patch": unchanged, "activation_memory_budget": 1.0},
    "torch._inductor.config": {"patch": unchanged, "fallback_random": False},
    "torch._inductor": {
        "cudagraph_mark_step_begin": nothing, "list_mode_options": lambda *args: {},
    },
    "torch.jit": _SCRIPT,
    "torch._jit_internal": _SCRIPT
    | {f"BroadcastingList{count}": _ListOfNumbers() for count in range(1, 7)}
    | {"_copy_to_script_wrapper": as_it_is},
    "torch.jit.annotations": {f"BroadcastingList{count}": _ListOfNumbers() for count in range(1, 7)}
    | {"List": list},
}  # fmt: skip
