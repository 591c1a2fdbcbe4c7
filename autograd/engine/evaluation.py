"""Gradients of a node's arguments, by the programs of its formulas.

Programs of pointwise ops hold for every shape and are kept per dtype; others are kept per shapes and plain
values as well.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tensorplug.core.device.device import META
from tensorplug.core.device.meta import MetaArray
from tensorplug.core.dispatch import layers
from tensorplug.core.dispatch.arguments import fits
from tensorplug.core.dispatch.call_keys import exact_key
from tensorplug.core.dispatch.keys import DispatchKey, dispatch_key
from tensorplug.core.dispatch.overrides import in_formula
from tensorplug.core.dispatch.programs import NUMBERS, Program, trace
from tensorplug.core.tensor.base import TensorBase, new_tensor

from .arithmetic import sum_to_shape
from .derivatives import Formula
from .formula_contracts import check_broadcast, check_gradients

if TYPE_CHECKING:
    from ..graph.nodes import OpNode

_KEPT = 512  # programs per formula before the oldest half is dropped


def evaluate_all(node: OpNode, gradient: Any) -> list[tuple[Any, bool]]:
    """Return (gradient, fresh) of each differentiable argument, as raw arrays; undo broadcasting."""
    sizes = node.sizes
    results: list[tuple[Any, bool]] = []
    gradients = (gradient,)
    for index in range(len(node.plan.formulas)):
        value, fresh = evaluate(node, index, gradients)
        if not node.plan.checked:
            check_broadcast(node, index, value)
        if sizes is not None and value is not None and sizes[index] != node.shape:
            value, fresh = sum_to_shape(value, sizes[index], node.key), True
        if type(value) is list:
            results.extend(paired(value, fresh))
        else:
            results.append((value, fresh))
    if not node.plan.checked:
        check_gradients(node, results)
    return results


def paired(values: list[Any], fresh: Any) -> list[tuple[Any, bool]]:
    """Return (gradient, fresh) of each argument in a list."""
    flags = fresh if type(fresh) is list else [False] * len(values)
    return list(zip(values, flags, strict=True))


def evaluate(node: OpNode, place: int, gradients: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return (gradient, fresh) of the argument of a plan's formula, as raw arrays; or lists of both."""
    plan = node.plan
    formula: Formula = plan.formulas[place]
    references = plan.gradients[place]
    if plan.programs is not None:
        known: Program | None = plan.programs[place]
        if known is not None:
            return known.run(_tensors(node, references, gradients)), known.fresh
    if formula.untraceable:
        return _on_tensors(node, formula, references, gradients)
    if formula.keyed:
        return _evaluate_keyed(node, place, gradients)
    key = node.key
    arrays: list[Any] = []
    uniform = len(gradients) == 1
    for reference in references:
        if reference is True or reference is False:
            uniform = False
            break
        if reference < 0:
            arrays.append(gradients[-1 - reference])
            continue
        assert node.saved is not None
        value = node.saved[reference]
        if isinstance(value, TensorBase):
            tensor = value
            if tensor._key is not key:
                uniform = False
                break
            version = node.versions[reference]
            storage = tensor._storage
            if version != (tensor._writes if storage is None else storage.version):
                raise node.modified(value, version)
            arrays.append(tensor._array)
        elif isinstance(value, NUMBERS) and fits(value, key.dtype):
            try:
                arrays.append(key.scalar(value))
            except (
                RuntimeError,
                OverflowError,
            ):
                # The rules of the formula's ops know what becomes of it.
                uniform = False
                break
        else:
            if not isinstance(value, NUMBERS) and not hasattr(value, "unpack"):
                formula.keyed = True  # it takes a plain value: never shape-free
            uniform = False
            break
    if uniform:
        program = formula.programs.get(key)
        if program is None and key not in formula.programs:
            program = _trace_uniform(formula, references, key)
            formula.programs[key] = program
            formula.keyed = program is None
        if program is not None:
            return program.run(arrays), program.fresh
    return _evaluate_keyed(node, place, gradients)


def _tensors(node: OpNode, references: tuple[Any, ...], gradients: tuple[Any, ...]) -> list[Any]:
    """Return the arrays among a formula's arguments: what a program for given plain values takes."""
    arrays: list[Any] = []
    saved = node.saved or ()
    for reference in references:
        if reference is True or reference is False:
            continue
        if reference < 0:
            arrays.append(gradients[-1 - reference])
            continue
        value = saved[reference]
        if isinstance(value, TensorBase):
            tensor = value
            storage = tensor._storage
            version = node.versions[reference]
            if version != (tensor._writes if storage is None else storage.version):
                raise node.modified(value, version)
            arrays.append(tensor._array)
    return arrays


def _trace_uniform(
    formula: Formula, references: tuple[Any, ...], key: DispatchKey
) -> Program | None:
    """Return the program of a formula of pointwise ops over one dtype, or None if it is none."""
    probes = [
        new_tensor(MetaArray((1,), key.dtype), dispatch_key(META, key.dtype), (1,))
        for _ in references
    ]
    try:
        program = trace(formula.function, probes, key.device)
    except Exception:
        return None
    return program if program.shape_free else None


def _evaluate_keyed(node: OpNode, index: int, gradients: tuple[Any, ...]) -> tuple[Any, Any]:
    formula: Formula = node.plan.formulas[index]
    references = node.plan.gradients[index]
    key: list[Any] = []  # of each argument: (key, shape) or (type, plain value)
    arrays: list[Any] = []
    saved = node.saved or ()
    for reference in references:
        if reference is not True and reference is not False:
            if reference < 0:
                arrays.append(gradients[-1 - reference])
                key.append(node.output_kind(-1 - reference))
                continue
            value = saved[reference]
            if isinstance(value, TensorBase):
                tensor = value
                version = node.versions[reference]
                storage = tensor._storage
                if version != (tensor._writes if storage is None else storage.version):
                    raise node.modified(value, version)
                arrays.append(tensor._array)
                key.append((tensor._key, tensor._shape))
                continue
        value = reference if isinstance(reference, bool) else node.unpack(reference)
        if isinstance(value, TensorBase):
            arrays.append(value._array)
            key.append((value._key, value._shape))
        elif isinstance(value, (list, tuple)) and any([isinstance(v, TensorBase) for v in value]):
            return _on_tensors(node, formula, references, gradients)
        else:
            # 1, 1.0 and True are equal as keys, but not as arguments, and neither are 0.0 and -0.0.
            key.append((type(value), value, exact_key(value)))
    frozen = tuple(key)
    try:
        program = formula.programs.get(frozen)
    except TypeError:  # a plain value that cannot be a key
        return _on_tensors(node, formula, references, gradients)
    if program is None:
        arguments = [
            new_tensor(MetaArray(value, first.dtype), dispatch_key(META, first.dtype), value)
            if isinstance(first, DispatchKey)
            else value
            for first, value, *_ in key
        ]
        try:
            program = trace(formula.function, arguments, node.key.device)
        except Exception:
            formula.untraceable = True
            return _on_tensors(node, formula, references, gradients)
        if len(formula.programs) >= _KEPT:
            for old in list(formula.programs)[: _KEPT // 2]:
                formula.programs.pop(old, None)  # another thread may do the same
        formula.programs[frozen] = program
    if node.plan.programs is not None:
        node.plan.programs[index] = program
    return program.run(arrays), program.fresh


def _on_tensors(
    node: OpNode, formula: Formula, references: tuple[Any, ...], gradients: tuple[Any, ...]
) -> tuple[Any, Any]:
    """Run a formula as it is, on tensors, without recording; return (gradient, fresh) as raw arrays."""
    tensors = tuple(
        [
            new_tensor(gradient, *node.output_kind(number))
            for number, gradient in enumerate(gradients)
        ]
    )
    arguments = node.arguments(references, tensors)
    with layers.gradient_off(), in_formula():
        result = formula.function(*arguments)
    if not isinstance(result, (list, tuple)):
        if result is None or not isinstance(result, TensorBase):
            return result, False  # what is no tensor is refused when the plan is checked
        return result._array, False
    # A new tensor without views that is in the list once belongs to its argument alone.
    known = {id(tensor) for tensor in (*tensors, *_flat(arguments))}
    counts = Counter([id(item) for item in result])
    fresh = [
        item is not None
        and item._storage is None
        and id(item) not in known
        and counts[id(item)] == 1
        for item in result
    ]
    return [None if item is None else item._array for item in result], fresh


def _flat(values: list[Any]) -> list[Any]:
    """Return values and what is in lists among them."""
    return [
        item
        for value in values
        for item in (value if isinstance(value, (list, tuple)) else (value,))
    ]
