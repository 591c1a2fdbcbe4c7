"""What a formula promises, and how it is held to it.

A gradient has the shape of its argument and its kind of dtype, a tangent those of the output. The first
evaluation of each plan and every tangent are checked, with broadcasting undone as ever: a formula that is
wrong is mostly wrong always.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tensorplug.core.dispatch.op import Op
from tensorplug.core.errors import DerivativeContractError
from tensorplug.core.labels import plugin_label
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.shapes import Shape

if TYPE_CHECKING:
    from ..graph.nodes import OpNode


def sums_to(own: Shape, shape: Shape) -> bool:
    """Return whether summing over broadcast dimensions leads from a shape to another."""
    return len(own) >= len(shape) and all(
        [size in (1, whole) for size, whole in zip(reversed(shape), reversed(own), strict=False)]
    )


def violation(owner: str, op: Op, what: str, got: str, expected: str) -> DerivativeContractError:
    """Return the error for a formula whose result is not like its argument."""
    return DerivativeContractError(
        f"{op.name}: {what}, from plugin {plugin_label(owner)}, returned {got}, expected "
        f"{expected}; please report this to the author of the plugin"
    )


def check_broadcast(node: OpNode, place: int, value: Any) -> None:
    """Refuse the gradient of a broadcast argument that cannot be summed to the argument's shape."""
    sizes = node.sizes
    own = _shape(value)
    if sizes is not None and own is not None and not sums_to(own, sizes[place]):
        rule = node.plan.rule
        argument = node.plan.formulas[place].argument
        raise violation(
            rule.owner,
            rule.op,
            f"the derivative by {argument!r}",
            f"shape {list(own)}",
            f"{list(sizes[place])}",
        )


def check_gradients(node: OpNode, results: list[tuple[Any, bool]]) -> None:
    """Refuse gradients that differ from what they are the gradients of in shape, or in kind of dtype."""
    plan = node.plan
    rule = plan.rule
    edges = node.edges
    formulas = plan.formulas
    named = len(formulas) == len(edges)
    for number, (edge, (value, _)) in enumerate(zip(edges, results, strict=False)):
        formula = formulas[number if named else 0]
        what = f"the derivative by {formula.argument!r}"
        if edge is None or value is None:
            continue
        key, shape = (
            (edge._key, edge._shape) if isinstance(edge, TensorBase) else (edge.key, edge.shape)
        )
        own = _shape(value)
        if own is None:
            raise violation(rule.owner, rule.op, what, type(value).__name__, "a tensor")
        if own != shape:
            raise violation(rule.owner, rule.op, what, f"shape {list(own)}", f"{list(shape)}")
        dtype = (
            value._key.dtype
            if isinstance(value, TensorBase)
            else key.runtime.dtype(_array(value, key))
        )
        if dtype.category != key.dtype.category:
            raise violation(rule.owner, rule.op, what, f"dtype {dtype.name}", key.dtype.name)
    if len(results) != len(edges):
        what = f"the derivative by {formulas[0].argument!r}"
        raise violation(rule.owner, rule.op, what, f"{len(results)} gradients", f"{len(edges)}")
    plan.checked = True


def check_tangent(owner: str, op: Op, argument: str, value: Any, tangent: Any, output: Any) -> None:
    """Refuse what a tangent formula made for one output, if it is unlike the output."""
    what = f"the tangent by {argument!r}"
    if not isinstance(value, TensorBase):
        raise violation(owner, op, what, type(value).__name__, "a tensor")
    shape, whole = value._shape, output._shape
    fits = shape == whole
    if not fits and (op.pointwise or op.elementwise):
        # Broadcasting to the output's shape may still lie ahead, as far as it does for the argument.
        fits = sums_to(whole, shape) and (
            not isinstance(tangent, TensorBase) or sums_to(shape, tangent._shape)
        )
    if not fits:
        raise violation(owner, op, what, f"shape {list(shape)}", f"{list(whole)}")
    if value._key.dtype.category > output._key.dtype.category:
        raise violation(owner, op, what, f"dtype {value._key.dtype.name}", output._key.dtype.name)


def _shape(value: Any) -> Shape | None:
    if isinstance(value, TensorBase):
        return value._shape
    shape = getattr(value, "shape", None)
    return None if shape is None else tuple(shape)


def _array(value: Any, key: Any) -> Any:
    return value if type(value) is key.array_type else key.as_array(value)
