"""Arguments and results of :mod:`.functional`: what is checked, and what stands for what is missing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.tensor.tensor import Tensor

from .engine.backward import grad
from .transforms.levels import REQUIRES_GRAD_INSIDE, state

Function = Callable[..., Any]


def as_tuple(value: Any, what: str, name: str) -> tuple[bool, tuple[Any, ...]]:
    """Return whether `value` is a tuple, and it as one, once it is made of tensors only."""
    is_tuple = isinstance(value, tuple)
    items = value if is_tuple else (value,)
    for number, item in enumerate(items):
        if isinstance(item, Tensor):
            continue
        subject = (
            f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the"
        )
        if is_tuple:
            raise TypeError(f"{subject} value at index {number} has type {type(item)}.")
        raise TypeError(f"{subject} given {what} has type {type(item)}.")
    return is_tuple, items


OUTPUTS = "outputs of the user-provided function"


def prepared(inputs: tuple[Any, ...], create_graph: bool) -> tuple[Any, ...]:
    """Return the points to differentiate at: linked to the given ones if that is to be recorded."""
    if create_graph:
        return tuple([x.view_as(x) if x.requires_grad else as_leaf(x) for x in inputs])
    return tuple([as_leaf(x) for x in inputs])


def as_leaf(tensor: Any) -> Any:
    """Return the tensor cut off from its graph, requiring grad if it can.

    Raises
    ------
    RuntimeError
        Inside of a transformed function, whose derivative would be lost with the graph.
    """
    if state.transformed:
        raise RuntimeError(REQUIRES_GRAD_INSIDE)
    return tensor.detach().requires_grad_(tensor._key.is_differentiable)


def finished(values: Any, create_graph: bool) -> Any:
    """Return results, without their graph unless it was asked for."""
    return values if create_graph else tuple([value.detach() for value in values])


def shaped_like(result: tuple[Any, ...], is_tuple: bool) -> Any:
    """Return results as a tuple where the user gave one, else the only one."""
    return result if is_tuple else result[0]


def check_vector(v: tuple[Any, ...], like: tuple[Any, ...], is_tuple: bool) -> None:
    """Refuse vectors that have other shapes than what they are multiplied with."""
    if len(v) != len(like):
        if is_tuple:
            raise RuntimeError(
                f"v is a tuple of invalid length: should be {len(like)} but got {len(v)}."
            )
        raise RuntimeError("The given v should contain a single Tensor.")
    for number, (one, other) in enumerate(zip(v, like, strict=True)):
        if one._shape != other._shape:
            entry = f"Entry {number} in " if is_tuple else ""
            raise RuntimeError(
                f"{entry}v has invalid size: should be {other.shape} but got {one.shape}."
            )


def check_outputs(outputs: tuple[Any, ...], inputs: tuple[Any, ...], strict: bool) -> None:
    """In strict mode, refuse outputs that cannot depend on the inputs."""
    if not strict:
        return
    for number, output in enumerate(outputs):
        if not output.requires_grad:
            raise RuntimeError(
                f"Output {number} of the user-provided function does not require gradients. The outputs "
                "must be computed in a differentiable manner from the input when running in strict mode."
            )
        if any(output is point for point in inputs):
            raise RuntimeError(
                f"Output {number} of the user-provided function is the same Tensor as an input, which is "
                "not allowed in strict mode."
            )


# What a result that depends on nothing means, by the stage at which it is found.
_INDEPENDENT = {
    "back": "The output of the user-provided function is independent of input {}. This is not allowed in "
    "strict mode.",
    "output": "Output {output} of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode.",
    "jacobian": "The jacobian of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode when create_graph=True.",
    "double": "The jacobian of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode when create_graph=True.",
    "hessian": "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You should "
    "ensure that your function is twice differentiable and that the jacobian depends on the inputs (this "
    "would be violated by a linear function for example).",
}


def filled(
    values: tuple[Any, ...],
    like: tuple[Any, ...],
    strict: bool,
    create_graph: bool,
    stage: str,
    constant: str = "jacobian",
    output: int = 0,
) -> tuple[Any, ...]:
    """Return the values with zeros for None; in strict mode neither None nor a constant may be there.

    `stage` and `constant` say what the one and the other mean, `output` of which output the values are.
    """
    result = []
    for number, (value, other) in enumerate(zip(values, like, strict=True)):
        if value is None:
            if strict:
                raise RuntimeError(_INDEPENDENT[stage].format(number, output=output))
            value = zeros_like(other)
        elif strict and create_graph and not value.requires_grad:
            raise RuntimeError(_INDEPENDENT[constant].format(number))
        result.append(value)
    return tuple(result)


def gradients_of(
    outputs: tuple[Any, ...],
    inputs: tuple[Any, ...],
    vectors: tuple[Any, ...] | None = None,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> tuple[Any, ...]:
    """Return the gradients of those outputs that require grad, None where nothing depends."""
    vectors = (None,) * len(outputs) if vectors is None else vectors
    live = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    if not live:
        return (None,) * len(inputs)
    wanted = [x for x in inputs if x.requires_grad]
    found = iter(
        grad(
            [o for o, _ in live],
            wanted,
            [v for _, v in live],
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
    )
    return tuple([next(found) if x.requires_grad else None for x in inputs])


def called(
    func: Function, inputs: tuple[Any, ...], name: str, strict: bool = False
) -> tuple[bool, tuple[Any, ...]]:
    """Return whether the function returned a tuple, and its outputs, checked."""
    is_tuple, outputs = as_tuple(func(*inputs), OUTPUTS, name)
    check_outputs(outputs, inputs, strict)
    return is_tuple, outputs


def vector_for(v: Any, like: tuple[Any, ...], is_tuple: bool, name: str, missing: str) -> Any:
    """Return the vector to multiply by; ones for a single element."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {missing}.")
        return (zeros_like(like[0]) + 1,)
    _, vector = as_tuple(v, "v", name)
    vector = tuple([item.detach() if not item.requires_grad else item for item in vector])
    check_vector(vector, like, is_tuple)
    return vector
