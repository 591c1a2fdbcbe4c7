"""Products with Jacobians and Hessians, and these matrices themselves, of a function of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core.ops.creation import zeros_like
from tensorplug.core.ops.joining import stack
from tensorplug.core.tensor import Tensor

from .engine import grad
from .modes import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Function = Callable[..., Any]


# --- arguments and results ----------------------------------------------------------------------


def _tuple(value: Any, what: str, name: str) -> tuple[bool, tuple[Any, ...]]:
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


_OUTPUTS = "outputs of the user-provided function"


def _inputs(inputs: tuple[Any, ...], create_graph: bool) -> tuple[Any, ...]:
    """Return the points to differentiate at: linked to the given ones if that is to be recorded."""
    if create_graph:
        return tuple([x.view_as(x) if x.requires_grad else _leaf(x) for x in inputs])
    return tuple([_leaf(x) for x in inputs])


def _leaf(tensor: Any) -> Any:
    return tensor.detach().requires_grad_(tensor._kind.is_differentiable)


def _finish(values: Any, create_graph: bool) -> Any:
    return values if create_graph else tuple([value.detach() for value in values])


def _shape_like(result: tuple[Any, ...], is_tuple: bool) -> Any:
    return result if is_tuple else result[0]


def _check_vector(v: tuple[Any, ...], like: tuple[Any, ...], is_tuple: bool) -> None:
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


def _check_outputs(outputs: tuple[Any, ...], inputs: tuple[Any, ...], strict: bool) -> None:
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
    "jacobian": "The jacobian of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode when create_graph=True.",
    "double": "The jacobian of the user-provided function is independent of input {}. This is not "
    "allowed in strict mode when create_graph=True.",
    "hessian": "While computing the hessian, found that the jacobian of the user-provided function with "
    "respect to input {} is independent of the input. This is not allowed in strict mode. You should "
    "ensure that your function is twice differentiable and that the jacobian depends on the inputs (this "
    "would be violated by a linear function for example).",
}


def _filled(
    values: tuple[Any, ...], like: tuple[Any, ...], strict: bool, create_graph: bool, stage: str
) -> tuple[Any, ...]:
    """Return the values with zeros for None; in strict mode neither None nor a constant may be there."""
    result = []
    for number, (value, other) in enumerate(zip(values, like, strict=True)):
        if value is None:
            if strict:
                raise RuntimeError(_INDEPENDENT[stage].format(number))
            value = zeros_like(other)
        elif strict and create_graph and not value.requires_grad:
            raise RuntimeError(
                _INDEPENDENT["hessian" if stage == "hessian" else "jacobian"].format(number)
            )
        result.append(value)
    return tuple(result)


def _gradients(
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


def _call(
    func: Function, inputs: tuple[Any, ...], name: str, strict: bool = False
) -> tuple[bool, tuple[Any, ...]]:
    is_tuple, outputs = _tuple(func(*inputs), _OUTPUTS, name)
    _check_outputs(outputs, inputs, strict)
    return is_tuple, outputs


def _vector(v: Any, like: tuple[Any, ...], is_tuple: bool, name: str, missing: str) -> Any:
    """Return the vector to multiply by; ones for a single element."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {missing}.")
        return (zeros_like(like[0]) + 1,)
    _, vector = _tuple(v, "v", name)
    vector = tuple([item.detach() if not item.requires_grad else item for item in vector])
    _check_vector(vector, like, is_tuple)
    return vector


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
        is_tuple, given = _tuple(inputs, "inputs", "vjp")
        points = _inputs(given, create_graph)
        many, outputs = _call(func, points, "vjp", strict)
        vector = _vector(
            v,
            outputs,
            many,
            "vjp",
            "the user-provided function returns a single Tensor with a single element",
        )
    with enable_grad():
        found = _gradients(outputs, points, vector, create_graph=create_graph)
        product = _filled(found, points, strict, create_graph, "back")
    return (
        _shape_like(_finish(outputs, create_graph), many),
        _shape_like(_finish(product, create_graph), is_tuple),
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
        is_tuple, given = _tuple(inputs, "inputs", "jvp")
        points = _inputs(given, create_graph)
        vector = _vector(
            v,
            points,
            is_tuple,
            "jvp",
            "the input to the user-provided function is a single Tensor with a single element",
        )
        many, outputs = _call(func, points, "jvp", strict)
        probes = tuple([zeros_like(out).requires_grad_() for out in outputs])
        first = _gradients(outputs, points, probes, create_graph=True)
        first = _filled(first, points, strict, create_graph, "back")
        second = _gradients(first, probes, vector, create_graph=create_graph)
        product = _filled(second, outputs, strict, create_graph, "back")
    return (
        _shape_like(_finish(outputs, create_graph), many),
        _shape_like(_finish(product, create_graph), many),
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
        is_tuple, given = _tuple(inputs, "inputs", "jacobian")
        points = _inputs(given, create_graph)
        if strategy == "forward-mode":
            return _forward_jacobian(func, points, create_graph, is_tuple)
        many, outputs = _call(func, points, "jacobian", strict)
        rows = [_jacobian_of(output, points, create_graph, strict, vectorize) for output in outputs]
    matrices = [_finish(row, create_graph) for row in rows]
    blocks = tuple([_shape_like(row, is_tuple) for row in matrices])
    return _shape_like(blocks, many)


def _jacobian_of(
    output: Any, points: tuple[Any, ...], create_graph: bool, strict: bool, vectorize: bool
) -> tuple[Any, ...]:
    """Return the Jacobians of one output with respect to all inputs."""
    size = output.numel()
    columns: list[list[Any]] = [[] for _ in points]
    flat = output.reshape(size)
    if vectorize and size and output.requires_grad:
        from tensorplug.core.ops.creation import eye

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
        found_row = _gradients(
            (flat[position],),
            points,
            create_graph=create_graph,
            retain_graph=True,
        )
        row = _filled(found_row, points, strict, create_graph, "back")
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
    from .transforms import jacobian_columns

    many, blocks = jacobian_columns(
        lambda *values: _tuple(func(*values), _OUTPUTS, "jacobian"), points
    )
    rows = tuple([_shape_like(_finish(row, create_graph), is_tuple) for row in blocks])
    return _shape_like(rows, many)


def _scalar(func: Function, name: str) -> Function:
    """Return `func`, checked to return one tensor of one element."""

    def checked(*points: Any) -> Any:
        result = func(*points)
        is_tuple, outputs = _tuple(result, _OUTPUTS, name)
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
    is_tuple, given = _tuple(inputs, "inputs", "hessian")
    _check_strategy(outer_jacobian_strategy, strict, vectorize)
    scalar = _scalar(func, "hessian")

    def gradient(*points: Any) -> Any:
        if outer_jacobian_strategy == "forward-mode":
            from .transforms import grad as transformed

            return transformed(scalar, tuple(range(len(points))))(*points)
        output = scalar(*points)
        _check_outputs((output,), points, strict)
        found = _gradients((output,), points, create_graph=True)
        return _filled(found, points, strict, True, "hessian")

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
        is_tuple, given = _tuple(inputs, "inputs", name)
        points = _inputs(given, create_graph)
        vector = _vector(
            v,
            points,
            is_tuple,
            name,
            "the input to the user-provided function is a single Tensor with a single element",
        )
        output = _scalar(func, name)(*points)
        _check_outputs((output,), points, strict)
        first = _gradients((output,), points, create_graph=True)
        first = _filled(first, points, strict, True, "hessian")
        if name == "vhp":
            second = _gradients(first, points, vector, create_graph=create_graph)
        else:
            # d/du of <u, H>: linear in u, so its derivative in direction v is H v.
            probes = tuple([zeros_like(x).requires_grad_() for x in points])
            inner = _gradients(first, points, probes, create_graph=True)
            inner = _filled(inner, points, strict, True, "hessian")
            second = _gradients(inner, probes, vector, create_graph=create_graph)
        product = _filled(second, points, strict, create_graph, "hessian")
    return (
        _finish((output,), create_graph)[0],
        _shape_like(_finish(product, create_graph), is_tuple),
    )
