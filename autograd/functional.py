"""Products with Jacobians and Hessians, and these matrices themselves, of a function of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.ops.creation.creation_like import zeros_like
from tensorplug.core.ops.creation.ranges import eye
from tensorplug.core.ops.joining.joining import stack

from .engine.backward import grad
from .functional_arguments import (
    OUTPUTS,
    as_tuple,
    called,
    check_outputs,
    filled,
    finished,
    gradients_of,
    prepared,
    shaped_like,
    vector_for,
)
from .grad_mode import enable_grad
from .transforms.jacobians import jacobian_columns
from .transforms.points import probe_like
from .transforms.transforms import grad as transformed

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]


# --- products -----------------------------------------------------------------------------------


def vjp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, and the product of a vector with the function's Jacobian.

    Parameters
    ----------
    func : callable
        Takes tensors; returns a tensor or a tuple of tensors.
    inputs : Tensor or tuple of Tensor
        Where to differentiate.
    v : Tensor or tuple of Tensor, optional
        Of the shape of the function's output; may be left out for a single element.
    create_graph : bool
        Whether the results can be differentiated.
    strict : bool
        Raise where an output does not depend on an input, rather than return zeros.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.autograd.functional.vjp(lambda x: x.exp().sum(), tp.zeros(2), tp.tensor(2.0))
    (tensor(2.), tensor([2., 2.]))
    """
    with enable_grad():
        is_tuple, given = as_tuple(inputs, "inputs", "vjp")
        points = prepared(given, create_graph)
        many, outputs = called(func, points, "vjp", strict)
        vector = vector_for(
            v,
            outputs,
            many,
            "vjp",
            "the user-provided function returns a single Tensor with a single element",
        )
    with enable_grad():
        found = gradients_of(outputs, points, vector, create_graph=create_graph)
        product = filled(found, points, strict, create_graph, "back")
    return (
        shaped_like(finished(outputs, create_graph), many),
        shaped_like(finished(product, create_graph), is_tuple),
    )


def jvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, and the product of the function's Jacobian with a vector.

    It is found by differentiating the vector-Jacobian product, which is linear in its vector, once more;
    forward mode (``tp.func.jvp``) computes it in one go.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for :func:`vjp`.
    v : Tensor or tuple of Tensor, optional
        Of the shape of the inputs; may be left out for a single element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.autograd.functional.jvp(lambda x: x * x, tp.ones(2), tp.tensor([1.0, 2.0]))
    (tensor([1., 1.]), tensor([2., 4.]))
    """
    with enable_grad():
        is_tuple, given = as_tuple(inputs, "inputs", "jvp")
        points = prepared(given, create_graph)
        vector = vector_for(
            v,
            points,
            is_tuple,
            "jvp",
            "the input to the user-provided function is a single Tensor with a single element",
        )
        many, outputs = called(func, points, "jvp", strict)
        probes = tuple([probe_like(out) for out in outputs])
        first = gradients_of(outputs, points, probes, create_graph=True)
        first = filled(first, points, strict, create_graph, "back")
        second = gradients_of(first, probes, vector, create_graph=create_graph)
        product = filled(second, outputs, strict, create_graph, "back")
    return (
        shaped_like(finished(outputs, create_graph), many),
        shaped_like(finished(product, create_graph), many),
    )


# --- whole matrices -----------------------------------------------------------------------------


def _check_strategy(strategy: str, strict: bool, vectorize: bool) -> None:
    assert strategy in ("forward-mode", "reverse-mode"), (
        'Expected strategy to be either "forward-mode" or "reverse-mode". Hint: If your function has more '
        'outputs than inputs, "forward-mode" tends to be more performant. Otherwise, prefer to use '
        '"reverse-mode".'
    )
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError(
            "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for "
            "`vectorize=True`."
        )
    if strict and vectorize:
        raise RuntimeError(
            "strict=True and vectorized=True are not supported together. Please either set "
            "vectorize=False, or set strict=False."
        )


def jacobian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Return the Jacobian of a function at a point.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for :func:`vjp`.
    vectorize : bool
        Compute all rows in one batched pass instead of one after the other; not with `strict`.
    strategy : {"reverse-mode", "forward-mode"}
        By rows, or by columns, which is cheaper for few inputs; the latter with `vectorize` only.

    Returns
    -------
    Tensor or tuple
        Of the output's shape followed by the input's; a tuple over outputs, of tuples over inputs, where
        these are tuples.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.autograd.functional.jacobian(lambda x: x * x, tp.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    _check_strategy(strategy, strict, vectorize)
    with enable_grad():
        is_tuple, given = as_tuple(inputs, "inputs", "jacobian")
        points = prepared(given, create_graph)
        if strategy == "forward-mode":
            return _forward_jacobian(func, points, create_graph, is_tuple)
        many, outputs = called(func, points, "jacobian", strict)
        rows = [
            _jacobian_of(output, number, points, create_graph, strict, vectorize)
            for number, output in enumerate(outputs)
        ]
    matrices = [finished(row, create_graph) for row in rows]
    blocks = tuple([shaped_like(row, is_tuple) for row in matrices])
    return shaped_like(blocks, many)


def _jacobian_of(
    output: Any,
    number: int,
    points: tuple[Any, ...],
    create_graph: bool,
    strict: bool,
    vectorize: bool,
) -> tuple[Any, ...]:
    """Return the Jacobians of one output, the one of that number, with respect to all inputs."""
    size = output.numel()
    columns: list[list[Any]] = [[] for _ in points]
    flat = output.reshape(size)
    if vectorize and size and output.requires_grad:
        seeds = eye(size, dtype=output.dtype, device=output.device).reshape((size, *output.shape))
        wanted = [x for x in points if x.requires_grad]
        found = iter(
            grad(
                output,
                wanted,
                seeds,
                create_graph=create_graph,
                retain_graph=True,
                allow_unused=True,
                is_grads_batched=True,
            )
        )
        results = [next(found) if x.requires_grad else None for x in points]
        return tuple(
            [
                zeros_like(output)
                .reshape((*output.shape, *[1] * x.ndim))
                .expand((*output.shape, *x.shape))
                .to(x.dtype)
                if value is None
                else value.reshape((*output.shape, *x.shape))
                for value, x in zip(results, points, strict=True)
            ]
        )
    for position in range(size):
        found_row = gradients_of(
            (flat[position],),
            points,
            create_graph=create_graph,
            retain_graph=True,
        )
        row = filled(found_row, points, strict, create_graph, "output", output=number)
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return tuple(
        [
            stack(column).reshape((*output.shape, *x.shape))
            if column
            else x.new_zeros((*output.shape, *x.shape))
            for column, x in zip(columns, points, strict=True)
        ]
    )


def _forward_jacobian(
    func: Function, points: tuple[Any, ...], create_graph: bool, is_tuple: bool
) -> Any:
    """Return the Jacobian column by column, by forward mode over a batch of unit vectors."""
    many, blocks = jacobian_columns(
        lambda *values: as_tuple(func(*values), OUTPUTS, "jacobian"), points
    )
    rows = tuple([shaped_like(finished(row, create_graph), is_tuple) for row in blocks])
    return shaped_like(rows, many)


def _scalar(func: Function, name: str) -> Function:
    """Return `func`, checked to return one tensor of one element."""

    def checked(*points: Any) -> Any:
        result = func(*points)
        is_tuple, outputs = as_tuple(result, OUTPUTS, name)
        if is_tuple:
            raise RuntimeError(f"The function given to {name} should return a single Tensor")
        if outputs[0].numel() != 1:
            raise RuntimeError(
                f"The Tensor returned by the function given to {name} should contain a single element"
            )
        return outputs[0].reshape(())

    return checked


def hessian(
    func: Function,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Return the Hessian of a function of one result at a point: the Jacobian of its gradient.

    Parameters
    ----------
    func : callable
        Returns a tensor of one element.
    inputs, create_graph, strict, vectorize
        As for :func:`jacobian`.
    outer_jacobian_strategy : {"reverse-mode", "forward-mode"}
        How the gradient is differentiated.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.autograd.functional.hessian(lambda x: (x**3).sum(), tp.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    is_tuple, given = as_tuple(inputs, "inputs", "hessian")
    _check_strategy(outer_jacobian_strategy, strict, vectorize)
    scalar = _scalar(func, "hessian")

    def gradient(*points: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            return transformed(scalar, tuple(range(len(points))))(*points)
        output = scalar(*points)
        check_outputs((output,), points, strict)
        found = gradients_of((output,), points, create_graph=True)
        return filled(found, points, strict, True, "hessian", "hessian")

    blocks = jacobian(gradient, given, create_graph, strict, vectorize, outer_jacobian_strategy)
    return blocks if is_tuple else blocks[0][0]


def vhp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, and the product of a vector with the function's Hessian.

    Parameters
    ----------
    func, inputs, create_graph, strict
        As for :func:`hessian`.
    v : Tensor or tuple of Tensor, optional
        Of the shape of the inputs; may be left out for a single element.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.autograd.functional.vhp(lambda x: (x**3).sum(), tp.tensor([1.0, 2.0]), tp.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product(func, inputs, v, create_graph, strict, "vhp")


def hvp(
    func: Function, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, and the product of the function's Hessian with a vector.

    The Hessian is symmetric where the second derivatives are continuous, and then this is what
    :func:`vhp` returns, which costs less.

    Parameters
    ----------
    func, inputs, v, create_graph, strict
        As for :func:`vhp`.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.autograd.functional.hvp(lambda x: (x**3).sum(), tp.tensor([1.0, 2.0]), tp.ones(2))
    (tensor(9.), tensor([ 6., 12.]))
    """
    return _hessian_product(func, inputs, v, create_graph, strict, "hvp")


def _hessian_product(
    func: Function, inputs: Any, v: Any, create_graph: bool, strict: bool, name: str
) -> tuple[Any, Any]:
    with enable_grad():
        is_tuple, given = as_tuple(inputs, "inputs", name)
        points = prepared(given, create_graph)
        vector = vector_for(
            v,
            points,
            is_tuple,
            name,
            "the input to the user-provided function is a single Tensor with a single element",
        )
        output = _scalar(func, name)(*points)
        check_outputs((output,), points, strict)
        first = gradients_of((output,), points, create_graph=True)
        first = filled(first, points, strict, True, "back", "hessian")
        if name == "vhp":
            second = gradients_of(first, points, vector, create_graph=create_graph)
        else:
            # d/du of <u, H>: linear in u, so its derivative in direction v is H v.
            probes = tuple([probe_like(x) for x in points])
            inner = gradients_of(first, points, probes, create_graph=True)
            inner = filled(inner, points, strict, True, "hessian", "hessian")
            second = gradients_of(inner, probes, vector, create_graph=create_graph)
        product = filled(second, points, strict, create_graph, "hessian", "hessian")
    return (
        finished((output,), create_graph)[0],
        shaped_like(finished(product, create_graph), is_tuple),
    )
