"""Capture at the level at which autograd records: for graphs that hold gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.device.generator import fork_rng
from tensorplug.core.dispatch import layers
from tensorplug.core.dispatch.op import Delegated, Op, first_tensor
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.ops.rules import cast
from tensorplug.core.tensor.base import TensorBase

from .capture import Recorder
from .graph import Graph
from .nodes import tensors_in

__all__ = ["RecordedLevel", "draws_by_seed", "recorded"]

#: The arguments of ops that make given random numbers.
_SEED = frozenset(("seed", "offset"))


def draws_by_seed(graph: Graph) -> bool:
    """Return whether ops of a graph make given random numbers, which would be the same at each run."""
    return any([_SEED.issubset(node.op.names) for node in graph.nodes])


def recorded(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether autograd records a composite as one node, rather than what its body calls."""
    tensor = first_tensor((*args, *kwargs.values()))
    if op.random and not any([given.requires_grad for given in tensors_in((args, kwargs))]):
        return True
    whole = op.derivative is not None or (
        tensor is not None
        and op.overridden
        and not op.updates
        and dispatch_state.native_kernel(op, tensor._key)
    )
    return whole and not _delegates(op, args, kwargs)


def _delegates(op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether the rule of a composite leaves such a call to other ops."""
    options = {name: value for name, value in kwargs.items() if name != "out"}
    with layers.isolated(), layers.gradient_off(), fork_rng():
        return type(op.arguments(args, options)) is Delegated


class RecordedLevel(Recorder):
    """Notes calls as autograd records them, so that what derivatives keep has been noted.

    Composites that are recorded by what their bodies call are taken apart, and conversions of dtypes are
    calls, too: the converted tensors are what is kept.
    """

    def __init__(self, shapes_from_data: bool = False, follow: bool = False) -> None:
        super().__init__(recorded, shapes_from_data, follow)

    def __call__(
        self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any], proceed: Callable[..., Any]
    ) -> Any:
        """Pass a call on and note it."""
        converts = op.pointwise and op.kind == "primitive" and op.inplace_of is None
        if converts and not self.inside and len({t._key.dtype for t in tensors_in(args)}) > 1:
            args = self._converted(op, args, kwargs)
        return super().__call__(op, args, kwargs, proceed)

    def _converted(self, op: Op, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        with layers.isolated(), layers.gradient_off():
            spec: Any = op.function(*args, **{n: v for n, v in kwargs.items() if n != "out"})
        if type(spec) is Delegated:
            return args
        given = list(args)
        for number, (value, made) in enumerate(zip(args, spec.values, strict=False)):
            tensors = isinstance(value, TensorBase) and isinstance(made, TensorBase)
            if tensors and made._key.dtype is not value._key.dtype:
                with self.active():
                    given[number] = cast(value, made._key.dtype)
        return tuple(given)
