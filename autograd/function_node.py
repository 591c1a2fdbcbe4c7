"""Calls of custom functions in the graph: the context of their two halves, the node behind their outputs."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

from tensorplug.core.dispatch.layers import gradient_off
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.base import TRACKED, TensorBase, extra_of, new_tensor, version_of
from tensorplug.core.tensor.tensor import Tensor

from .engine.arithmetic import normal, shown, zeros
from .graph import raw_saved, saved_tensors, views
from .graph.nodes import FREED, MultiNode, OutputNode, SavedByHook
from .graph.views import edge_of, requires_grad

__all__ = ["FunctionCtx", "FunctionNode", "attach"]


def _only_tensors(name: str, values: tuple[Any, ...]) -> tuple[Any, ...]:
    for value in values:
        if not isinstance(value, TensorBase):
            raise RuntimeError(
                f"{name} only accepts variable arguments, but got type {type(value).__name__}"
            )
    return values


class FunctionCtx:
    """What ``forward`` and ``backward`` of a :class:`Function` share.

    Any attribute may be set on it; tensors should go through :meth:`save_for_backward`, which checks that
    nobody wrote to them in between.
    """

    def __init__(self) -> None:
        self.needs_input_grad: tuple[bool, ...] = ()
        self._to_save: tuple[Any, ...] = ()
        self._dirty: tuple[Any, ...] = ()
        self._non_differentiable: tuple[Any, ...] = ()
        self._materialize = True
        self._materialize_non_diff_grads = True
        self._node: Any = None
        self._for_forward: tuple[Any, ...] = ()
        self._jvp = False

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for ``jvp``."""
        self._for_forward = tensors

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep inputs, outputs or intermediate tensors for ``backward``."""
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, TensorBase):
                raise TypeError(
                    "save_for_backward can only save variables, but argument is of type "
                    f"{type(tensor).__name__}; set other values as attributes of ctx"
                )
        self._to_save = tensors

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say that ``forward`` wrote into these inputs; it has to return them."""
        self._dirty = _only_tensors("mark_dirty", tensors)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say that these outputs have no derivative."""
        self._non_differentiable = _only_tensors("mark_non_differentiable", tensors)

    def set_materialize_grads(self, value: bool) -> None:
        """Say whether ``backward`` gets zeros (the default) or None for outputs without gradient."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to :meth:`save_for_backward`."""
        if self._jvp:
            return self._for_forward
        if self._node is None:
            return self._to_save
        return self._node.unpack()

    @property
    def saved_variables(self) -> tuple[Any, ...]:
        """An old name of :attr:`saved_tensors`."""
        warnings.warn(
            "'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2
        )
        return self.saved_tensors


class FunctionNode(MultiNode):
    """The node of a :class:`Function`'s call; it stands behind one output node per output."""

    __slots__ = ("ctx", "differentiable", "function", "given", "inputs", "numbers", "returned")

    differentiable: tuple[bool, ...]
    # Of each saved tensor: the number of the output that it is, or None.
    numbers: tuple[int | None, ...]
    function: Any
    ctx: FunctionCtx
    inputs: int
    # Of each argument: whether it is a tensor.
    given: tuple[bool, ...]
    # Of each value that forward() returned: whether it is a tensor.
    returned: tuple[bool, ...]

    def name(self) -> str:
        """Return the class's name with "Backward"."""
        return f"{self.function.__name__}Backward"

    def __getattr__(self, name: str) -> Any:
        """Return what the call's ctx has: in torch the two are one object."""
        if name.startswith("__") or name == "ctx":
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        if name == "_raw_saved_tensors":
            if self.saved is None:
                raise RuntimeError(FREED)
            return tuple([raw_saved.SavedTensor(self, index) for index in range(len(self.saved))])
        return self.unpack() if name == "saved_tensors" else getattr(self.ctx, name)

    def release(self) -> None:
        """Drop what was saved, if anything was."""
        if self.saved:
            self.saved = None

    def unpack(self) -> Any:  # type: ignore[override]
        """Return the saved tensors, checked."""
        if self.saved is None:
            raise RuntimeError(FREED)
        values = []
        for value, version, number in zip(self.saved, self.versions, self.numbers, strict=True):
            kept: Any = value
            if isinstance(value, SavedByHook):
                kept = value.unpack()
            elif value is not None and version_of(value) != version:
                raise self.modified(value, version)
            if number is not None:
                result = new_tensor(kept._array, kept._key, kept._shape)
                result._storage = kept._storage
                if self.differentiable[number]:
                    result._state = TRACKED
                    result._node = OutputNode(self, number)
                kept = result
            values.append(kept)
        return tuple(values)

    def modified(self, tensor: Any, version: int) -> RuntimeError:
        """Return the error for a saved tensor that was written to."""
        return RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace "
            f"operation: [{tensor.device} {tensor.dtype.name} {list(tensor._shape)}], saved by "
            f"{self.name()}, is at version {version_of(tensor)}; expected version {version} instead"
        )

    def apply(self, gradient: Any, raw: bool) -> list[tuple[Any, bool]]:
        """Call the user's ``backward``."""
        if self.saved is None:
            raise RuntimeError(FREED)
        gradients: list[Any] = []
        for number, (key, shape) in enumerate(self.outputs):
            given = gradient.get(number)
            if (
                given is None
                and self.ctx._materialize
                and (self.differentiable[number] or self.ctx._materialize_non_diff_grads)
            ):
                given = zeros(key, shape, raw)
            gradients.append(shown(normal(given, key), key) if raw and given is not None else given)
        if not all(self.returned):
            of_tensors = iter(gradients)
            gradients = [next(of_tensors) if is_one else None for is_one in self.returned]
        backward = self.function._chosen_backward()
        if raw:
            with gradient_off():
                results = backward(self.ctx, *gradients)
        else:
            results = backward(self.ctx, *gradients)
        results = results if isinstance(results, (tuple, list)) else (results,)
        results = tuple(results)
        if len(results) > self.inputs and all(r is None for r in results[self.inputs :]):
            results = results[: self.inputs]
        if len(results) != self.inputs:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{self.inputs}, got {len(results)})"
            )
        checked: list[tuple[Any, bool]] = []
        for position, (value, edge) in enumerate(zip(results, self.edges, strict=True)):
            if value is None or edge is None:
                if value is not None and not self.given[position]:
                    raise RuntimeError(
                        f"function {self.name()} returned a gradient different than None at position "
                        f"{position + 1}, but the corresponding forward input was not a Variable"
                    )
                checked.append((None, False))
                continue
            if not isinstance(value, TensorBase):
                raise TypeError(
                    f"expected Variable or None (got {type(value).__name__}) as gradient {position} of "
                    f"{self.name()}"
                )
            value = self._fitted(value, edge, position)
            if value._key.intercepts:
                # Has no array: what else than leaves takes a gradient takes one.
                value = value if isinstance(edge, TensorBase) else value.to_dense()
            checked.append((value._array if raw and not value._key.intercepts else value, False))
        return checked

    def _fitted(self, value: Any, edge: Any, position: int) -> Any:
        key = edge._key if isinstance(edge, TensorBase) else edge.key
        if value._key.dtype.is_complex and not key.dtype.is_complex:
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {position} - expected type "
                f"{key.dtype}, as the input is real, but got {value._key.dtype}"
            )
        shape = edge._shape if isinstance(edge, TensorBase) else edge.shape
        if value._shape != shape:
            try:
                value = value.sum_to_size(shape)
            except RuntimeError:
                raise RuntimeError(
                    f"Function {self.name()} returned an invalid gradient at index {position} - got "
                    f"{list(value._shape)} but expected shape compatible with {list(shape)}"
                ) from None
        return value if value._key is key else value.to(key.device, key.dtype)


def attach(
    function: Any,
    ctx: FunctionCtx,
    args: tuple[Any, ...],
    tracked: tuple[bool, ...],
    outputs: list[Any],
) -> None:
    """Record a call of a Function: put one node behind its outputs."""
    tensors = [out for out in outputs if isinstance(out, Tensor)]
    if not tensors:
        return
    for dirty in ctx._dirty:
        if requires_grad(dirty) and dirty.is_leaf:
            raise RuntimeError(
                "a leaf Variable that requires grad is being used in an in-place operation."
            )
    edges = tuple(
        [edge_of(arg) if wanted else None for arg, wanted in zip(args, tracked, strict=True)]
    )
    node = function._backward_cls()
    node.begin(edges, tensors[0]._key, tensors[0]._shape)
    node.function = function
    node.ctx = ctx
    node.inputs = len(args)
    node.given = tuple([isinstance(arg, TensorBase) for arg in args])
    node.returned = tuple([isinstance(out, Tensor) for out in outputs])
    node.outputs = tuple([(out._key, out._shape) for out in tensors])
    node.differentiable = tuple(
        [
            out._key.is_differentiable
            and not any(out is other for other in ctx._non_differentiable)
            for out in tensors
        ]
    )
    saved: list[Any] = []
    numbers: list[int | None] = []
    for tensor in ctx._to_save:
        number = next((n for n, out in enumerate(tensors) if out is tensor), None)
        # The output itself would make a cycle with its node.
        saved.append(tensor if number is None else tensor.detach())
        numbers.append(number)
    node.saved, node.numbers = tuple(saved), tuple(numbers)
    node.versions = tuple([None if tensor is None else version_of(tensor) for tensor in saved])
    if dispatch_state.gradient.watched:
        saved_tensors.watch(node)
    ctx._to_save = ()
    ctx._node = _Weak(node)
    for number, out in enumerate(tensors):
        if not node.differentiable[number]:
            continue
        if any(out is dirty for dirty in ctx._dirty) and out._view is not None:
            views.rebase(out, OutputNode(node, number))
            continue
        out._node = OutputNode(node, number)
        out._state = TRACKED
        if out._view is not None:
            # The Function's node is its present one.
            out._view.seen = views.base_of(out._view)._node
            out._view.unrecorded_in = ""
        if number:
            extra_of(out).output_nr = number


class _Weak:
    """The ctx's way to its node, without a cycle."""

    __slots__ = ("reference",)

    def __init__(self, node: FunctionNode) -> None:
        self.reference = weakref.ref(node)

    def unpack(self) -> Any:
        node = self.reference()
        if node is None:
            raise RuntimeError(FREED)
        return node.unpack()
