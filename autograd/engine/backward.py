"""What starts a backward pass: :func:`backward` and :func:`grad`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any

from tensorplug.core.contexts import Context, declare, thread
from tensorplug.core.device.device import META
from tensorplug.core.dispatch import layers, overrides
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.errors import check_flag
from tensorplug.core.ops.creation.creation_like import ones_like
from tensorplug.core.ops.joining.joining import stack
from tensorplug.core.tensor.base import TensorBase, new_tensor

from ..graph.edges import EdgeOutput, GradientEdge, stand_in
from ..graph.nodes import Node, OpNode
from ..graph.views import edge_of, requires_grad
from ..vmap.vmap import vmap
from . import arithmetic, backward_hooks, nested_passes
from .accumulation import accumulate
from .arithmetic import normal
from .backward_callbacks import running
from .engine import ACCUMULATE, BackwardPass


def _as_tuple(value: Any, name: str) -> tuple[Any, ...]:
    if isinstance(value, TensorBase):
        return (value,)
    if isinstance(value, GradientEdge):
        return (stand_in(value),)
    if isinstance(value, Sequence) or hasattr(value, "__iter__"):
        return tuple([stand_in(item) for item in value])
    raise TypeError(f"{name} must be a Tensor or a sequence of Tensors, got {type(value).__name__}")


def _in_graph(tensors: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return what of tensors the graph knows: of sparse ones the values that they show."""
    return tuple([getattr(tensor, "_in_graph", tensor) for tensor in tensors])


def _root_gradients(
    outputs: tuple[Any, ...], gradients: Any, name: str, *, returned: bool = False
) -> list[Any]:
    """Return the gradient to begin with at each output; ones for a single element.

    Where gradients are `returned`, they may be such, or views of them, and are the caller's to write to.
    """
    given = (None,) * len(outputs) if gradients is None else gradients
    given = (given,) if isinstance(given, TensorBase) else tuple(given)
    if len(given) == len(outputs):
        given = tuple(
            [
                output._values_of(gradient)
                if gradient is not None and hasattr(output, "_in_graph")
                else gradient
                for output, gradient in zip(outputs, given, strict=True)
            ]
        )
        outputs = _in_graph(outputs)
    if len(given) != len(outputs):
        raise RuntimeError(f"{name}: got {len(outputs)} tensors and {len(given)} gradients")
    return [
        _root_gradient(output, gradient, number, name, returned)
        for number, (output, gradient) in enumerate(zip(outputs, given, strict=True))
    ]


def _is_plain(node: Any) -> bool:
    """Return whether a node is an op's, without hooks: nobody's function gets what arrives there."""
    return node is None or (type(node) is OpNode and node.extra is None)


def _root_gradient(output: Any, gradient: Any, number: int, name: str, returned: bool) -> Any:
    """Return the gradient to begin with at one output."""
    if not isinstance(output, TensorBase):
        raise TypeError(f"{name}: expected Tensors, got {type(output).__name__}")
    root = output
    key = root._key
    if not root._state or not requires_grad(root):
        raise RuntimeError(
            f"element {number} of tensors does not require grad and does not have a grad_fn"
        )
    if gradient is None:
        if root._shape and math.prod(root._shape) != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not key.dtype.is_floating_point:
            raise RuntimeError(
                f"grad can be implicitly created only for real scalar outputs but got {key.dtype}"
            )
        if key.intercepts:
            with layers.gradient_off():
                return ones_like(output)  # type: ignore[arg-type]
        if dispatch_state.layers_active and thread.stack:
            return arithmetic.FILL_NEW.call(root._shape, 1, key.dtype, key.device)
        if root._shape or returned or not _is_plain(root._node):
            array = key.kernels[arithmetic.FILL_NEW.index](root._shape, 1, key.dtype)
            array = normal(array, key)
        else:
            array = key.scalar(1.0)  # shared: formulas write to no gradient
        return new_tensor(array, key, root._shape)
    if not isinstance(gradient, TensorBase):
        raise TypeError(f"{name}: gradients must be Tensors or None, got {gradient!r}")
    if gradient._shape != root._shape:
        raise RuntimeError(
            f"Mismatch in shape: grad_output[{number}] has a shape of {list(gradient._shape)} and "
            f"output[{number}] has a shape of {list(root._shape)}."
        )
    if gradient._key.dtype.is_complex != key.dtype.is_complex:
        raise RuntimeError(
            "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch "
            f"in dtype: grad_output[{number}] has a dtype of {gradient._key.dtype} and output[{number}] has "
            f"a dtype of {key.dtype}."
        )
    return gradient if gradient._key is key else gradient.to(output)  # type: ignore[attr-defined]


class _Seen(Context):
    """A pass whose ops layers see, within a ``with`` block."""

    __slots__ = ()

    def _changes(self) -> dict[str, Any]:
        return {"differentiating": True}


declare(differentiating=False)
_SEEN = _Seen()


def _start(pass_: BackwardPass, outputs: tuple[Any, ...], gradients: list[Any]) -> None:
    """Run a pass from tensors and their gradients."""
    if any([gradient._key.device is META or gradient._key.intercepts for gradient in gradients]):
        pass_.raw = False  # neither "meta" nor sparse tensors have raw forms of ops
    roots = [
        (edge_of(output), gradient._array if pass_.raw else gradient)
        for output, gradient in zip(outputs, gradients, strict=True)
    ]
    run = pass_.run if running.current is None else partial(nested_passes.run, pass_)
    if dispatch_state.layers_active and thread.stack:
        with _SEEN:
            run(roots)
    else:
        run(roots)


def _refuse_in_transforms() -> None:
    if thread.transformed:
        raise RuntimeError(
            "backward() called inside a functorch transform. This is not supported, please use func.grad or "
            "func.vjp instead, or call backward() outside of the function that is transformed."
        )


def backward_from(
    tensor: Any, gradient: Any, retain_graph: bool | None, create_graph: bool
) -> None:
    """Do what :func:`backward` does for one tensor and all leaves."""
    if dispatch_state.layers_active:
        layers.note_opaque("backward()")
    _refuse_in_transforms()
    _check_flags("backward", retain_graph, create_graph)
    gradient = _root_gradient(tensor, gradient, 0, "backward()", returned=False)
    pass_ = BackwardPass(create_graph, create_graph if retain_graph is None else retain_graph)
    _start(pass_, (tensor,), [gradient])


def _check_flags(name: str, retain_graph: Any, create_graph: Any) -> None:
    if create_graph is not False:
        check_flag(create_graph, name, "create_graph", ints=True)
    if retain_graph is not None:
        check_flag(retain_graph, name, "retain_graph", ints=True)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    grad_variables: Any = None,
    inputs: Any = None,
) -> None:
    """Add the derivatives of the sum of `tensors` to the ``grad`` of the leaves.

    Parameters
    ----------
    tensors : Tensor or sequence of Tensor
        What to differentiate.
    grad_tensors : Tensor or sequence of (Tensor or None), optional
        The gradient to begin with at each; ones where left out, for a single element.
    retain_graph : bool, optional
        Keep what the graph saved; by default the value of `create_graph`.
    create_graph : bool
        Record the pass itself, for higher derivatives.
    inputs : Tensor or sequence of Tensor, optional
        Accumulate into these only.

    Raises
    ------
    RuntimeError
        If a tensor does not require grad, a gradient is missing or has another shape, or the graph was
        freed by an earlier pass.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor(3.0, requires_grad=True)
    >>> tp.autograd.backward(x * x)
    >>> x.grad
    tensor(6.)
    """
    if dispatch_state.layers_active:
        layers.note_opaque("backward()")
    _refuse_in_transforms()
    _check_flags("backward", retain_graph, create_graph)
    outputs = _as_tuple(tensors, "tensors")
    if grad_variables is not None:
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                "Please only use `grad_tensors`."
            )
        warnings.warn(
            "`grad_variables` is deprecated. Use `grad_tensors` instead.",
            FutureWarning,
            stacklevel=2,
        )
        grad_tensors = grad_variables
    targets = None
    wanted = () if inputs is None else _as_tuple(inputs, "inputs")
    if inputs is not None:
        if not wanted:
            raise RuntimeError("'inputs' argument to backward() cannot be empty.")
        targets = _targets(wanted, ACCUMULATE)
    if not outputs:
        return
    gradients = _root_gradients(outputs, grad_tensors, "backward()")
    retain = create_graph if retain_graph is None else retain_graph
    pass_ = BackwardPass(create_graph, retain, targets)
    _start(pass_, _in_graph(outputs), gradients)
    for tensor in _in_graph(wanted):
        edge = edge_of(tensor)
        if tensor._array is None:
            continue  # it stands for an edge, and has no `grad` that somebody could read
        if tensor._extra is not None and tensor._extra.retains_grad:
            continue  # it has its gradient already
        if isinstance(edge, Node) and edge in pass_.captured:
            gradient = backward_hooks.as_tensor(pass_, pass_.captured[edge], edge.key)
            if gradient is not None:
                accumulate(tensor, gradient, False, pass_.create_graph, pass_.raw)


def _targets(inputs: tuple[Any, ...], mark: Any) -> dict[Any, Any]:
    targets = {}
    for number, tensor in enumerate(_in_graph(inputs)):
        if not isinstance(tensor, TensorBase):
            raise TypeError(f"inputs must be Tensors, got {type(tensor).__name__}")
        if not requires_grad(tensor):
            raise RuntimeError(
                f"One of the differentiated Tensors does not require grad (input {number})"
            )
        targets[_place(edge_of(tensor))] = mark
    return targets


def _place(edge: Any) -> Any:
    """Return what a pass meets of an edge: of an output that no tensor has, the node behind."""
    return edge.parent if type(edge) is EdgeOutput else edge


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple[Any, ...]:
    """Return the derivatives of the sum of `outputs` with respect to `inputs`.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of Tensor
        What to differentiate, and with respect to what.
    grad_outputs : Tensor or sequence of (Tensor or None), optional
        The gradient to begin with at each output.
    retain_graph, create_graph : bool
        As for :func:`backward`.
    allow_unused : bool, optional
        Return None for an input that the outputs do not depend on, rather than raise.
    is_grads_batched : bool
        Whether `grad_outputs` have a leading dimension of independent gradients.
    materialize_grads : bool
        Return zeros instead of None.

    Examples
    --------
    >>> import tensorplug as tp
    >>> x = tp.tensor([1.0, 2.0], requires_grad=True)
    >>> tp.autograd.grad((x**3).sum(), x)
    (tensor([ 3., 12.]),)
    """
    roots = _as_tuple(outputs, "outputs")
    wanted = _as_tuple(inputs, "inputs")
    if not wanted:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    if not roots:
        raise RuntimeError("`outputs` argument to `grad()` cannot be empty.")
    if dispatch_state.layers_active:
        found = overrides.relevant((*roots, *wanted))
        if found or overrides.modes_active():
            options = {
                "grad_outputs": grad_outputs,
                "retain_graph": retain_graph,
                "create_graph": create_graph,
                "only_inputs": only_inputs,
                "allow_unused": allow_unused,
                "is_grads_batched": is_grads_batched,
                "materialize_grads": materialize_grads,
            }
            results: tuple[Any, ...] = overrides.handle(grad, found, (roots, wanted), options)
            return results
    _check_flags("grad", retain_graph, create_graph)
    if allow_unused is not None:
        check_flag(allow_unused, "grad", "allow_unused", ints=True)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: False."
        )
    if is_grads_batched:
        return _batched(
            roots, wanted, grad_outputs, retain_graph, create_graph, allow_unused, materialize_grads
        )
    targets = _targets(wanted, None)
    gradients = _root_gradients(roots, grad_outputs, "grad()", returned=True)
    retain = create_graph if retain_graph is None else retain_graph
    pass_ = BackwardPass(create_graph, retain, targets)
    _start(pass_, _in_graph(roots), gradients)
    derivatives = []
    for tensor, shown in zip(_in_graph(wanted), wanted, strict=True):
        edge = edge_of(tensor)
        value = pass_.captured.get(_place(edge))
        if type(edge) is EdgeOutput and value is not None:
            value = value.get(edge.number)
        if value is None:
            if materialize_grads:
                if tensor._array is None:
                    raise RuntimeError(
                        "materialize_grads cannot be used when the given input is a GradientEdge"
                    )
                value = arithmetic.zeros(tensor._key, tensor._shape, False)
                if create_graph and tensor._key.is_differentiable:
                    value.requires_grad_()  # so that they can be differentiated once more
            elif not allow_unused:
                raise RuntimeError(
                    "One of the differentiated Tensors appears to not have been used in the graph. Set "
                    "allow_unused=True if this is the desired behavior."
                )
        elif isinstance(edge, Node):
            value = backward_hooks.as_tensor(pass_, value, edge.key)
        if shown is not tensor and value is not None:
            value = shown._gradient_over(value)
        derivatives.append(value)
    return tuple(derivatives)


def _batched(
    outputs: tuple[Any, ...],
    inputs: tuple[Any, ...],
    grad_outputs: Any,
    retain_graph: bool | None,
    create_graph: bool,
    allow_unused: bool | None,
    materialize_grads: bool,
) -> tuple[Any, ...]:
    """Differentiate for all leading indices of the gradients at once."""
    given = _as_tuple(grad_outputs, "grad_outputs")
    if not any(g is not None for g in given):
        raise RuntimeError("grad(): is_grads_batched needs grad_outputs")
    for number, (gradient, output) in enumerate(zip(given, outputs, strict=False)):
        if isinstance(gradient, TensorBase) and gradient._shape[1:] != output._shape:
            raise RuntimeError(
                "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the "
                "batch dimension. The sizes of the remaining dimensions are expected to match the shape of "
                "corresponding output, but a mismatch was detected: "
                f"grad_output[{number}] has a shape of {list(gradient._shape)} and output[{number}] has a "
                f"shape of {list(output._shape)}."
            )
    used: list[bool] = []

    def one(*gradients: Any) -> tuple[Any, ...]:
        rest = iter(gradients)
        found = grad(
            outputs,
            inputs,
            tuple([None if g is None else next(rest) for g in given]),
            True if retain_graph is None else retain_graph,
            create_graph,
            True,
            allow_unused,
            False,
            materialize_grads,
        )
        used[:] = [value is not None for value in found]
        return tuple([value for value in found if value is not None])

    batches = [g for g in given if g is not None]
    if any([tensor._key.intercepts for tensor in (*outputs, *inputs, *batches)]):
        # Tensors without memory of their own are in no batch: one row after another.
        rows = [one(*row) for row in zip(*[batch.unbind() for batch in batches], strict=True)]
        found = iter([stack(column) for column in zip(*rows, strict=True)])
    else:
        found = iter(vmap(one)(*batches))
    return tuple([next(found) if is_used else None for is_used in used])
