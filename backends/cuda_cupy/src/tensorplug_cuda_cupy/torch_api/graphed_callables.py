"""``tp.cuda.make_graphed_callables``: modules and functions whose forward and backward are graphs."""

from __future__ import annotations

import sys
from typing import Any

from tensorplug.plugin import Function, grad, once_differentiable, tree_flatten, tree_unflatten

from ..runtime import graphs, streams


class Static:
    """A callable over tensors that stay where they are, for its graphs.

    Parameters
    ----------
    function : callable
        A module or a function of tensors.
    arguments : tuple of Tensor
        Into which each call's arguments are copied.
    allow_unused : bool
        Whether arguments may have no part in the results.
    """

    def __init__(self, function: Any, arguments: tuple[Any, ...], allow_unused: bool) -> None:
        self._function = function
        self._allow_unused = allow_unused
        self.arguments = arguments
        parameters = getattr(function, "parameters", None)
        self.parameters: tuple[Any, ...] = tuple(parameters()) if parameters is not None else ()
        self.inputs = (*arguments, *self.parameters)
        self.structure: Any = None
        self.outputs: tuple[Any, ...] = ()
        self.grad_outputs: tuple[Any, ...] = ()
        self.grad_inputs: tuple[Any, ...] = ()

    def call(self) -> tuple[Any, ...]:
        """Return the results' tensors in a row."""
        outputs, self.structure = tree_flatten(self._function(*self.arguments))
        for output in outputs:
            if not hasattr(output, "requires_grad"):
                raise TypeError(
                    "make_graphed_callables(): a callable has to return tensors, got "
                    f"{type(output).__name__}"
                )
        return tuple(outputs)

    def differentiate(self, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the gradient of each input, None for what requires none."""
        pairs = zip(outputs, self.grad_outputs, strict=True)
        known = [(output, g) for output, g in pairs if g is not None]
        wanted = [x for x in self.inputs if x.requires_grad]
        if not known or not wanted:
            return (None,) * len(self.inputs)
        found = iter(
            grad(
                [output for output, _ in known],
                wanted,
                [g for _, g in known],
                allow_unused=self._allow_unused,
            )
        )
        return tuple([next(found) if x.requires_grad else None for x in self.inputs])

    def set_grad_outputs(self, outputs: tuple[Any, ...]) -> None:
        """Make the memory into which the gradients of the results are copied."""
        self.grad_outputs = tuple(
            [o.detach().new_zeros(o.shape) if o.requires_grad else None for o in outputs]
        )


def captured(static: Static, part: str, pool: Any, stream: Any) -> Any:
    """Return the graph of a callable's "forward" or "backward", whose results it then holds."""
    made = graphs.CUDAGraph()
    with graphs.graph(made, pool, stream):
        if part == "forward":
            static.outputs = static.call()
        else:
            static.grad_inputs = static.differentiate(static.outputs)
    return made


def make_graphed_callables(
    callables: Any,
    sample_args: tuple[Any, ...],
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Return callables whose work, forward and backward, is captured in graphs and queued as a whole.

    Parameters
    ----------
    callables : Module, function, or a tuple of these
        Each computes with tensors alone; several are captured in the order in which they will run. Of a
        module, ``forward`` is replaced; in the other of ``train()`` and ``eval()`` the original runs.
    sample_args : tuple of Tensor, or a tuple of such tuples
        Arguments of the shapes, dtypes and ``requires_grad`` that calls will have. They serve as the
        graphs' inputs, into which later arguments are copied.
    num_warmup_iters : int
        How often each callable runs before it is captured.
    allow_unused_input : bool
        Whether arguments may have no part in the results.
    pool : optional
        What :meth:`CUDAGraph.pool` or :func:`graph_pool_handle` returned, to share memory.

    Returns
    -------
    Module, function, or a tuple of these
        Their results are overwritten by the next call, and can be differentiated once.

    Raises
    ------
    TypeError
        If samples or results are no tensors.
    RuntimeError
        If a module has hooks or buffers that require grad, or autocast keeps casts from call to call.
    """
    alone = not isinstance(callables, tuple)
    functions = (callables,) if alone else callables
    samples = (sample_args,) if alone else sample_args
    _check(functions, samples)
    statics = [
        Static(function, tuple(arguments), allow_unused_input)
        for function, arguments in zip(functions, samples, strict=True)
    ]
    stream = streams.Stream()
    stream.wait_stream(streams.current_stream())
    with streams.stream(stream):
        for static in statics:
            for _ in range(num_warmup_iters):
                outputs = static.call()
                static.set_grad_outputs(outputs)
                static.differentiate(outputs)
                del outputs
    streams.current_stream().wait_stream(stream)
    pool = graphs.graph_pool_handle() if pool is None else pool
    forwards = [captured(static, "forward", pool, stream) for static in statics]
    for static in statics:
        static.set_grad_outputs(static.outputs)
    # What a callable has freed serves the ones before it, as their backward runs later.
    backwards = [captured(static, "backward", pool, stream) for static in reversed(statics)]
    made = [
        _graphed(function, static, forward, backward)
        for function, static, forward, backward in zip(
            functions, statics, forwards, reversed(backwards), strict=True
        )
    ]
    return made[0] if alone else tuple(made)


def _check(functions: tuple[Any, ...], samples: tuple[Any, ...]) -> None:
    facade = sys.modules.get("tensorplug")
    asked = [getattr(facade, f"is_autocast_{what}enabled", None) for what in ("", "cache_")]
    if all([told is not None and told() for told in asked]):
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set `cache_enabled=False`."
        )
    if len(functions) != len(samples):
        raise RuntimeError(
            f"make_graphed_callables(): got {len(functions)} callables and sample_args for {len(samples)}"
        )
    for function, arguments in zip(functions, samples, strict=True):
        if not isinstance(arguments, (tuple, list)):
            raise TypeError(
                "make_graphed_callables(): sample_args of a callable must be a tuple of tensors, got "
                f"{type(arguments).__name__}"
            )
        for argument in arguments:
            if not hasattr(argument, "requires_grad"):
                raise TypeError(
                    "make_graphed_callables(): sample_args must contain only tensors, got "
                    f"{type(argument).__name__}"
                )
        tables = ("_backward_hooks", "_forward_hooks", "_forward_pre_hooks")
        if any([getattr(function, table, None) for table in tables]):
            raise RuntimeError(
                "make_graphed_callables(): modules must not have hooks when they are passed; they may be "
                "registered afterwards"
            )
        if any([buffer.requires_grad for buffer in getattr(function, "buffers", list)()]):
            raise RuntimeError(
                "make_graphed_callables(): buffers of modules must have requires_grad=False; only "
                "parameters may be trained"
            )


def _graphed(function: Any, static: Static, forward_graph: Any, backward_graph: Any) -> Any:
    """Return a callable in which the graphs of a static one stand for its work."""

    class Graphed(Function):
        @staticmethod
        def forward(ctx: Any, *inputs: Any) -> tuple[Any, ...]:
            for there, given in zip(static.arguments, inputs, strict=False):
                _copy(there, given)
            forward_graph.replay()
            outputs = _shown(static.outputs)
            pairs = zip(outputs, static.grad_outputs, strict=True)
            ctx.mark_non_differentiable(*[output for output, g in pairs if g is None])
            return outputs

        @staticmethod
        @once_differentiable
        def backward(_: Any, *gradients: Any) -> tuple[Any, ...]:
            for there, given in zip(static.grad_outputs, gradients, strict=True):
                if there is not None:
                    _copy(there, given)
            backward_graph.replay()
            return _shown(static.grad_inputs)

    def run(*arguments: Any) -> Any:
        if len(arguments) != len(static.arguments):
            raise TypeError(
                f"a graphed callable was captured with {len(static.arguments)} arguments and got "
                f"{len(arguments)}"
            )
        return tree_unflatten(list(Graphed.apply(*arguments, *static.parameters)), static.structure)

    if not hasattr(function, "training"):
        return run
    training, original = function.training, function.forward

    def forward(*arguments: Any) -> Any:
        return run(*arguments) if function.training == training else original(*arguments)

    function.forward = forward
    return function


def _copy(target: Any, source: Any) -> None:
    if target.data_ptr() != source.data_ptr():
        target.copy_(source)


def _shown(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return tensors over the same memory, without history."""
    return tuple([None if tensor is None else tensor.detach() for tensor in tensors])
