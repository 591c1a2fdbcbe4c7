"""Transforms of functions: gradients, Jacobians and products with them, each a function again.

All of them nest, with each other and with ``vmap``. Reverse mode knows no levels: a function is
differentiated at points that are fresh in the graph, so that inner and outer derivatives do not mix.
Inside of vmap it works on the tensors behind: samples do not depend on each other, so the gradient of the
sum of all results holds each sample's own gradient.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tensorplug.core.layers import recording
from tensorplug.core.ops.creation import eye, zeros_like
from tensorplug.core.tensor import Tensor

from . import engine
from .batching.tensors import BatchedTensor, front, moved, wrap
from .batching.vmap import batched_everywhere, vmap
from .forward import ForwardLevel, keep_tangents, set_tangent, tangent_at
from .levels import Within, entered, state
from .modes import _Fixed, enable_grad
from .nodes import Node
from .trees import tree_flatten, tree_map, tree_unflatten
from .views import edge_of

__all__ = [
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "vjp",
]

Function = Callable[..., Any]


# --- tensors behind batched ones --------------------------------------------------------------


def lowered(tensor: Any, batches: tuple[Any, ...]) -> Any:
    """Return the tensor behind one that is batched at all of these levels, their dimensions first.

    A level that came later, and so is the outermost wrapping, stays.
    """
    if not batches:
        return tensor
    if isinstance(tensor, BatchedTensor) and tensor.level not in batches:
        inner = lowered(tensor.value, batches)
        return wrap(inner, tensor.bdim + len(batches), tensor.level)
    for number in range(len(batches) - 1, -1, -1):
        with Within(batches[:number], state.tangents):
            tensor = front(tensor, batches[number])
    return tensor


def raised(tensor: Any, batches: tuple[Any, ...]) -> Any:
    """Undo :func:`lowered`."""
    if not batches:
        return tensor
    if isinstance(tensor, BatchedTensor):
        with Within((), state.tangents):
            inner = moved(tensor.value, tensor.bdim, len(batches))
        return wrap(raised(inner, batches), 0, tensor.level)
    for level in batches:
        tensor = wrap(tensor, 0, level)
    return tensor


def behind(tensor: Any, batches: tuple[Any, ...]) -> Any:
    """Return what lies behind any tensor, as if it were batched at all of these levels."""
    return lowered(batched_everywhere(tensor, batches), batches)


def _rebuilt(tensor: Any, change: Callable[[Any], Any]) -> Any:
    """Return a tensor with the ordinary one that lies behind it changed."""
    if isinstance(tensor, BatchedTensor):
        return wrap(_rebuilt(tensor.value, change), tensor.bdim, tensor.level)
    return change(tensor)


# --- points to differentiate at, and what comes out ---------------------------------------------


def _point(tensor: Any, batches: tuple[Any, ...]) -> Any:
    """Return a fresh tensor of the graph, of the same content, from behind the batches."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(tensor)}")
    if not tensor._kind.is_differentiable:
        raise RuntimeError("only Tensors of floating point dtype can require gradients")
    low = behind(tensor, batches)
    with Within((), state.tangents):
        if low.requires_grad:
            return low.view_as(low)
        fresh = low.detach()
        keep_tangents(low, fresh)
        return fresh.requires_grad_()


def _depends_elsewhere(tensors: Sequence[Any], points: Sequence[Any]) -> bool:
    """Return whether the graph of some tensors leads to a leaf other than these points."""
    own = {id(point) for point in points}
    stack = [edge_of(tensor) for tensor in tensors if tensor.requires_grad]
    seen: set[int] = set()
    while stack:
        edge = stack.pop()
        if edge is None or id(edge) in seen:
            continue
        seen.add(id(edge))
        if isinstance(edge, Node):
            stack.extend(edge.edges)
        elif id(edge) not in own:
            return True
    return False


def _released(tree: Any, points: Sequence[Any], outside: bool) -> Any:
    """Return results as the caller may have them: recorded only as far as the caller records."""

    def release(tensor: Any) -> Any:
        if not tensor.requires_grad:
            return tensor
        if outside and _depends_elsewhere([tensor], points):
            return tensor
        cut = tensor.detach()
        keep_tangents(tensor, cut)
        return cut

    return tree_map(
        lambda leaf: _rebuilt(leaf, release) if isinstance(leaf, Tensor) else leaf, tree
    )


def _gradients(
    outputs: Sequence[Any],
    points: Sequence[Any],
    vectors: Sequence[Any],
    batches: tuple[Any, ...],
    outside: bool,
    retain: bool,
    own: Sequence[Any] = (),
) -> list[Any]:
    """Return the gradients of ordinary tensors, zeros where nothing depends."""
    live = [(o, v) for o, v in zip(outputs, vectors, strict=True) if o.requires_grad]
    record = outside and (
        any(v.requires_grad for _, v in live)
        or _depends_elsewhere([o for o, _ in live], [*points, *own])
    )
    inner = tuple([level for level in state.batches if level not in batches])
    with Within(inner, state.tangents), _Fixed(record):
        found: Sequence[Any] = [None] * len(points)
        if live:
            found = engine.grad(
                [o for o, _ in live],
                list(points),
                [v for _, v in live],
                retain_graph=retain or record,
                create_graph=record,
                allow_unused=True,
            )
        return [
            zeros_like(point.detach()) if value is None else value
            for value, point in zip(found, points, strict=True)
        ]


# --- which arguments --------------------------------------------------------------------------


def _argnums(argnums: Any, count: int) -> tuple[int, ...]:
    """Return the positions of the arguments to differentiate for, nonnegative."""
    if isinstance(argnums, bool) or not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    chosen = (argnums,) if isinstance(argnums, int) else argnums
    if not chosen:
        raise RuntimeError("argnums must be non-empty")
    for number in chosen:
        if not isinstance(number, int):
            raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(number)}")
        if not -count <= number < count:
            raise RuntimeError(f"Got argnum={number}, but only {count} positional inputs")
    chosen = tuple([number % count for number in chosen])
    if len(set(chosen)) != len(chosen):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return chosen


def _picked(args: tuple[Any, ...], argnums: Any) -> tuple[tuple[int, ...], Any]:
    chosen = _argnums(argnums, len(args))
    return chosen, args[chosen[0]] if isinstance(argnums, int) else tuple([args[n] for n in chosen])


def _replaced(args: tuple[Any, ...], argnums: Any, chosen: tuple[int, ...], new: Any) -> list[Any]:
    result = list(args)
    for number, value in zip(chosen, (new,) if isinstance(argnums, int) else new, strict=True):
        result[number] = value
    return result


# --- gradients --------------------------------------------------------------------------------


def grad_and_value(
    func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False
) -> Function:
    """Return a function that returns the gradient of `func`, and what `func` returns.

    Parameters
    ----------
    func, argnums, has_aux
        As for :func:`grad`.

    Returns
    -------
    callable
        Returns ``(gradient, value)``, or ``(gradient, (value, aux))``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.func.grad_and_value(lambda x: x * x)(tp.tensor(3.0))
    (tensor(6.), tensor(9.))
    """

    @functools.wraps(func)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        batches = state.batches
        outside = recording.enabled
        chosen, picked = _picked(args, argnums)
        with enable_grad():
            leaves, spec = tree_flatten(picked)
            points = [_point(leaf, batches) for leaf in leaves]
            inner = tree_unflatten([raised(point, batches) for point in points], spec)
            output = func(*_replaced(args, argnums, chosen, inner), **kwargs)
            aux = None
            if has_aux:
                if not isinstance(output, tuple) or len(output) != 2:
                    raise RuntimeError(
                        "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if "
                        "has_aux is True"
                    )
                output, aux = output
            _check_scalar(output)
            low = behind(output, batches)
            with Within((), state.tangents):
                ones = zeros_like(low.detach()) + 1
        found = _gradients([low], points, [ones], batches, outside, False)
        gradients = tree_unflatten([raised(value, batches) for value in found], spec)
        value = _released(output, points, outside)
        if has_aux:
            return gradients, (value, _released(aux, points, outside))
        return gradients, value

    return transformed


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(
            f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
        )
    if output.ndim:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{output.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )


def grad(func: Function, argnums: int | tuple[int, ...] = 0, has_aux: bool = False) -> Function:
    """Return the function that computes the gradient of `func`.

    Parameters
    ----------
    func : callable
        Returns a tensor of no dimensions; with `has_aux` a pair, of which the second part is passed on.
    argnums : int or tuple of int
        For which arguments; each may be a nested container of tensors.
    has_aux : bool
        Whether `func` returns something beside the value.

    Returns
    -------
    callable
        Takes what `func` takes; returns the gradient, with the structure of the argument, or
        ``(gradient, aux)``.

    Raises
    ------
    RuntimeError
        When called, if `func` returns something else, or `argnums` does not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> from tensorplug.func import grad
    >>> grad(tp.sin)(tp.tensor(0.0))
    tensor(1.)
    >>> grad(grad(lambda x: x**3))(tp.tensor(2.0))
    tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        gradients, value = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return transformed


# --- products with Jacobians ------------------------------------------------------------------


def _tensors(tree: Any, name: str) -> tuple[list[Any], Any]:
    """Return the leaves of what a function returned, which must be tensors, and the structure."""
    leaves, spec = tree_flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}"
            )
    return leaves, spec


def _split_aux(output: Any, has_aux: bool, name: str) -> tuple[Any, Any]:
    if not has_aux:
        return output, None
    if not isinstance(output, tuple) or len(output) != 2:
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if has_aux is True"
        )
    return output


def vjp(func: Function, *primals: Any, has_aux: bool = False) -> Any:
    """Return ``func(*primals)``, and the function that multiplies a vector with the Jacobian there.

    Parameters
    ----------
    func : callable
        Returns a tensor or a nested container of tensors; with `has_aux` a pair.
    *primals
        Tensors or nested containers of them.
    has_aux : bool
        Whether `func` returns something beside the value.

    Returns
    -------
    tuple
        ``(output, vjp_fn)`` or ``(output, vjp_fn, aux)``. ``vjp_fn(cotangents)`` takes what has the output's
        structure, and returns a tuple of one part per primal (for a single primal, that part).

    Examples
    --------
    >>> import tensorplug as tp
    >>> output, back = tp.func.vjp(lambda x: x * x, tp.tensor([1.0, 2.0]))
    >>> back(tp.ones(2))
    (tensor([2., 4.]),)
    """
    name = "vjp(f, *primals)"
    batches = state.batches
    outside = recording.enabled
    with enable_grad():
        leaves, spec = tree_flatten(primals)
        points = [_point(leaf, batches) for leaf in leaves]
        output = func(*tree_unflatten([raised(point, batches) for point in points], spec))
        output, aux = _split_aux(output, has_aux, name)
        results, out_spec = _tensors(output, name)
        low = [behind(result, batches) for result in results]

    def back(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        vectors, given_spec = tree_flatten(given)
        if given_spec != out_spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to "
                f"the function. cotangents: {given_spec}, primal output: {out_spec}"
            )
        for number, (vector, result) in enumerate(zip(vectors, results, strict=True)):
            if vector._shape != result._shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{number}] has a shape of {vector.shape} and "
                    f"output[{number}] has a shape of {result.shape}."
                )
        # The cotangents may be batched at levels that came later.
        pushed = [behind(vector, batches) for vector in vectors]
        record = recording.enabled if create_graph is None else create_graph
        found = _gradients(low, points, pushed, batches, record, retain_graph)
        return tree_unflatten([raised(value, batches) for value in found], spec)

    value = _released(output, points, outside)
    return (value, back, _released(aux, points, outside)) if has_aux else (value, back)


def _without(tensor: Any, level: ForwardLevel) -> tuple[Any, Any]:
    """Return a tensor's part without tangent, and the tangent, zeros if it has none."""
    found = []

    def take(base: Any) -> Any:
        found.append(tangent_at(base, level))
        return base

    _rebuilt_for(tensor, take)
    if found[0] is None:
        return tensor, None
    tangent = _rebuilt(tensor, lambda _: found[0])
    return tensor, tangent


def _rebuilt_for(tensor: Any, visit: Callable[[Any], Any]) -> None:
    while isinstance(tensor, BatchedTensor):
        tensor = tensor.value
    visit(tensor)


def jvp(
    func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> Any:
    """Return ``func(*primals)``, and the product of the Jacobian there with a vector, by forward mode.

    Parameters
    ----------
    func : callable
        Returns a tensor or a nested container of tensors; with `has_aux` a pair.
    primals, tangents : tuple
        The arguments and the vector, of the same structure.
    strict : bool
        Raise where an output does not depend on the arguments, rather than return zeros.
    has_aux : bool
        Whether `func` returns something beside the value.

    Returns
    -------
    tuple
        ``(output, tangent)`` or ``(output, tangent, aux)``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.func.jvp(tp.sin, (tp.tensor(0.0),), (tp.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    name = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        raise RuntimeError(
            f"{name}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    points, spec = tree_flatten(primals)
    vectors, vector_spec = tree_flatten(tangents)
    if spec != vector_spec:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. For example, if "
            "primals is a tuple of 3 tensors, tangents also must be. Got primals with structure "
            f"{spec} and tangents with structure {vector_spec}"
        )
    for what, items in (("primals", points), ("tangents", vectors)):
        for item in items:
            if not isinstance(item, Tensor):
                raise RuntimeError(
                    f"{name}: Expected {what} to contain only tensors, got {type(item)}"
                )
    batches = state.batches
    level = ForwardLevel()
    duals = []
    for point, vector in zip(points, vectors, strict=True):
        if point._shape != vector._shape:
            raise RuntimeError(
                "Trying to set a forward gradient that has a different size than that of the original "
                f"Tensor, this is not supported. Tensor is of size {list(point._shape)} while the given "
                f"forward gradient is of size {list(vector._shape)}."
            )
        low, direction = behind(point, batches), behind(vector, batches)
        with Within((), state.tangents):
            dual = low.view_as(low)
        duals.append((dual, direction))
    with entered(level, batch=False):
        for dual, direction in duals:
            set_tangent(dual, level, direction)
        arguments = [raised(dual, batches) for dual, _ in duals]
        output = func(*tree_unflatten(arguments, spec))
        output, aux = _split_aux(output, has_aux, name)
        results, out_spec = _tensors(output, name)
        with Within(state.batches, state.tangents[:-1]):
            pairs = [_without(result, level) for result in results]
            if strict and any(tangent is None for _, tangent in pairs):
                raise RuntimeError(
                    f"{name}: The output of f is independent of the inputs, which strict=True forbids"
                )
            pushed = [zeros_like(value) if tangent is None else tangent for value, tangent in pairs]
    answer = tree_unflatten(pushed, out_spec)
    return (output, answer, aux) if has_aux else (output, answer)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """Return ``func(*primals)``, and the linear function that the function's derivative there is.

    The function is run once, here; each call of what is returned costs one backward pass.

    Examples
    --------
    >>> import tensorplug as tp
    >>> output, push = tp.func.linearize(lambda x: x * x, tp.tensor([1.0, 2.0]))
    >>> push(tp.tensor([1.0, 0.0]))
    tensor([2., 0.])
    """
    batches = state.batches
    outside = recording.enabled
    with enable_grad():
        leaves, spec = tree_flatten(primals)
        points = [_point(leaf, batches) for leaf in leaves]
        output = func(*tree_unflatten([raised(point, batches) for point in points], spec))
        results, out_spec = _tensors(output, "linearize(f, *primals)")
        low = [behind(result, batches) for result in results]
        with Within((), state.tangents):
            live = [value for value in low if value.requires_grad]
            probes = [zeros_like(value.detach()).requires_grad_() for value in live]
            pulled = (
                engine.grad(live, points, probes, create_graph=True, allow_unused=True)
                if live
                else [None] * len(points)
            )

    def push(*tangents: Any) -> Any:
        vectors, given = tree_flatten(tangents)
        if given != spec:
            raise RuntimeError(
                "Expected the tangents to have the structure of the primals passed to linearize(): "
                f"{spec}, got {given}"
            )
        for vector, point in zip(vectors, leaves, strict=True):
            if vector._shape != point._shape or vector._kind.dtype is not point._kind.dtype:
                raise RuntimeError(
                    "Expected the tangents to have the shape and dtype of the primals passed to "
                    f"linearize(): {point.shape} of {point.dtype}, got {vector.shape} of {vector.dtype}"
                )
        pairs = [
            (value, behind(vector, batches))
            for value, vector in zip(pulled, vectors, strict=True)
            if value is not None and value.requires_grad
        ]
        found = iter(
            _gradients(
                [value for value, _ in pairs],
                probes,
                [vector for _, vector in pairs],
                batches,
                recording.enabled,
                True,
                points,
            )
        )
        pushed = [
            next(found) if value.requires_grad else zeros_like(value.detach()) for value in low
        ]
        return tree_unflatten([raised(value, batches) for value in pushed], out_spec)

    return _released(output, points, outside), push


# --- Jacobians --------------------------------------------------------------------------------


def _check_real(tensors: Sequence[Any], name: str, what: str) -> None:
    """Refuse complex numbers: rows and columns of a Jacobian would be conjugated differently."""
    for number, tensor in enumerate(tensors):
        if isinstance(tensor, Tensor) and tensor._kind.dtype.is_complex:
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened "
                f"{what[:-1]} idx: {number}; view_as_real() makes the parts numbers of their own"
            )


def _basis(like: Any) -> Any:
    """Return the unit vectors of a tensor's shape, along a new first dimension."""
    size = like.numel()
    made = eye(size, dtype=like._kind.dtype, device=like._kind.device)
    return made.reshape((size, *like._shape))


def jacrev(
    func: Function,
    argnums: int | tuple[int, ...] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Function:
    """Return the function that computes the Jacobian of `func`, row by row in one batch.

    Parameters
    ----------
    func : callable
        Returns a tensor or a nested container of tensors; with `has_aux` a pair.
    argnums : int or tuple of int
        For which arguments.
    has_aux : bool
        Whether `func` returns something beside the value.
    chunk_size : int, optional
        How many rows to compute at a time; by default all.

    Returns
    -------
    callable
        Takes what `func` takes; returns, in the structure of the output, for each argument a tensor of the
        output's shape followed by the argument's.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.func.jacrev(lambda x: x * x)(tp.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        chosen, picked = _picked(args, argnums)

        def of_picked(inner: Any) -> Any:
            return func(*_replaced(args, argnums, chosen, inner), **kwargs)

        inputs, in_spec = tree_flatten(picked)
        _check_real(inputs, "jacrev", "inputs")
        output, back, *aux = vjp(of_picked, picked, has_aux=has_aux)
        results, out_spec = tree_flatten(output)
        _check_real(results, "jacrev", "outputs")
        blocks = []
        for number, result in enumerate(results):
            if not result.numel():
                rows: list[Any] = [
                    result.new_zeros((*result._shape, *point._shape)) for point in inputs
                ]
                blocks.append(tree_unflatten(rows, in_spec))
                continue

            def row(vector: Any, number: int = number) -> Any:
                seeds = [zeros_like(other.detach()) for other in results]
                seeds[number] = vector
                return back(tree_unflatten(seeds, out_spec))[0]

            found = vmap(row, chunk_size=chunk_size)(_basis(result))
            blocks.append(
                tree_map(
                    lambda value, shape=result._shape: value.reshape((*shape, *value._shape[1:])),
                    found,
                )
            )
        jacobian = tree_unflatten(blocks, out_spec)
        return (jacobian, aux[0]) if has_aux else jacobian

    return transformed


def jacfwd(
    func: Function,
    argnums: int | tuple[int, ...] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Function:
    """Return the function that computes the Jacobian of `func`, column by column in one batch.

    Cheaper than :func:`jacrev` where there are fewer inputs than outputs.

    Parameters
    ----------
    func, argnums, has_aux
        As for :func:`jacrev`.
    randomness : {"error", "same", "different"}
        As for ``vmap``.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.func.jacfwd(lambda x: x * x)(tp.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )

    @functools.wraps(func)
    def transformed(*args: Any, **kwargs: Any) -> Any:
        chosen, picked = _picked(args, argnums)

        def of_picked(*leaves: Any) -> Any:
            inner = tree_unflatten(list(leaves), spec)
            return func(*_replaced(args, argnums, chosen, inner), **kwargs)

        inputs, spec = tree_flatten(picked)
        columns, out_spec, aux = _columns(of_picked, tuple(inputs), has_aux, randomness)
        blocks = [tree_unflatten(list(row), spec) for row in columns]
        jacobian = tree_unflatten(blocks, out_spec)
        return (jacobian, aux) if has_aux else jacobian

    return transformed


def _columns(
    func: Function, inputs: tuple[Any, ...], has_aux: bool, randomness: str
) -> tuple[list[list[Any]], Any, Any]:
    """Return the Jacobians, by output and input, and the structure of the output."""
    _check_real(inputs, "jacfwd", "inputs")
    sizes = [point.numel() for point in inputs]
    total = sum(sizes)
    directions = []
    start = 0
    for point, size in zip(inputs, sizes, strict=True):
        own = eye(total, dtype=point._kind.dtype, device=point._kind.device).narrow(1, start, size)
        directions.append(own.reshape((total, *point._shape)))
        start += size
    kept: list[Any] = []

    def column(*vectors: Any) -> Any:
        _, tangent, *aux = jvp(func, inputs, vectors, has_aux=has_aux)
        leaves, spec = tree_flatten(tangent)
        _check_real(leaves, "jacfwd", "outputs")
        kept[:] = [spec, aux]
        return tuple(leaves), (aux[0] if has_aux else ())

    found, aux = vmap(column, out_dims=(0, 0 if has_aux else None), randomness=randomness)(
        *directions
    )
    out_spec = kept[0]
    blocks = []
    for value in found:
        shape = value._shape[1:]
        row = []
        start = 0
        for point, size in zip(inputs, sizes, strict=True):
            part = value.narrow(0, start, size)
            start += size
            part = moved(
                part.reshape((size, -1)) if part.numel() else part.reshape((size, 0)), 0, 1
            )
            row.append(part.reshape((*shape, *point._shape)))
        blocks.append(row)
    if has_aux:
        aux = tree_map(lambda leaf: leaf[0], aux)
    return blocks, out_spec, aux


def jacobian_columns(func: Function, points: tuple[Any, ...]) -> tuple[bool, list[list[Any]]]:
    """Return whether `func`, which tells with its results, returns a tuple, and its Jacobians."""
    many: list[bool] = []

    def values(*inner: Any) -> Any:
        is_tuple, outputs = func(*inner)
        many[:] = [is_tuple]
        return outputs

    blocks, _, _ = _columns(values, points, False, "error")
    return many[0], blocks


def hessian(func: Function, argnums: int | tuple[int, ...] = 0) -> Function:
    """Return the function that computes the Hessian of `func`: forward mode over reverse mode.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.func.hessian(lambda x: (x**3).sum())(tp.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
