"""``vmap``: a function of one sample becomes a function of a batch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tensorplug.core.device.generator import fork_rng
from tensorplug.core.ops.joining.joining import cat
from tensorplug.core.tensor.tensor import Tensor

from ..transforms.levels import entered
from ..transforms.pytree import Tree, broadcast_prefix, tree_flatten, tree_unflatten
from .batched_tensor import BatchLevel, front, is_batched, moved, wrap


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that applies `func` to every sample of a batch at once.

    Parameters
    ----------
    func : callable
        Takes and returns tensors, or nested containers of them, of one sample.
    in_dims : int, None or nested tuple of them
        Along which dimension of each argument the samples lie; None for an argument that all samples
        share. One value stands for everything below it.
    out_dims : int, None or nested tuple of them
        Where the samples lie in the results; None for a result that is the same for all.
    randomness : {"error", "same", "different"}
        Whether random ops raise, or give all samples the same numbers, or each its own.
    chunk_size : int, optional
        How many samples to compute at a time; by default all.

    Returns
    -------
    callable
        Takes batches. Keyword arguments are shared by all samples.

    Raises
    ------
    ValueError
        When called, if `in_dims` or `out_dims` do not fit, or the batches differ in size.
    RuntimeError
        When called, if the function's flow depends on a batched value, or it draws random numbers and
        `randomness` is "error".

    Examples
    --------
    >>> import tensorplug as tp
    >>> rows = tp.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> tp.vmap(tp.dot)(rows, rows)
    tensor([ 5., 25.])
    >>> tp.vmap(lambda x: x.sum(), in_dims=1)(rows)
    tensor([4., 6.])
    """
    if randomness not in ("error", "different", "same"):
        raise RuntimeError(
            f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}"
        )
    if chunk_size is not None and not (chunk_size == chunk_size and chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def mapped(*args: Any, **kwargs: Any) -> Any:
        name = _name(func)
        size, leaves, dims, spec = _batch(in_dims, args, name)
        if chunk_size is None or chunk_size >= size:
            return _run(func, size, leaves, dims, spec, kwargs, out_dims, randomness, name)
        parts = []
        for start in range(0, size, chunk_size):
            count = min(chunk_size, size - start)
            part = [_part(leaf, dim, start, count) for leaf, dim in zip(leaves, dims, strict=True)]
            # What is the same for all samples is so for those of all chunks.
            with fork_rng(enabled=randomness == "same" and start + count < size):
                parts.append(
                    _run(func, count, part, dims, spec, kwargs, out_dims, randomness, name)
                )
        return _joined(parts, out_dims)

    return mapped


def _name(func: Callable[..., Any]) -> str:
    return getattr(func, "__name__", None) or repr(func)


def _part(leaf: Any, dim: int | None, start: int, count: int) -> Any:
    return leaf if dim is None else leaf.narrow(dim, start, count)


def _joined(parts: list[Any], out_dims: Any) -> Any:
    """Return the results of all chunks as one."""
    flat = [tree_flatten(part) for part in parts]
    spec = flat[0][1]
    dims = broadcast_prefix(out_dims, spec) or []
    columns = zip(*[leaves for leaves, _ in flat], strict=True)
    joined = [
        column[0] if dim is None else cat(list(column), dim)
        for column, dim in zip(columns, dims, strict=True)
    ]
    return tree_unflatten(joined, spec)


def _batch(
    in_dims: Any, args: tuple[Any, ...], name: str
) -> tuple[int, list[Any], list[Any], Tree]:
    """Return the number of samples, the arguments' leaves, the dimension of each, and the structure."""
    call = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>)"
    if not isinstance(in_dims, (int, tuple)) or isinstance(in_dims, bool):
        raise ValueError(
            f"{call}: expected `in_dims` to be int or a (potentially nested) tuple matching the structure "
            f"of inputs, got: {type(in_dims)}."
        )
    if not args:
        raise ValueError(
            f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
            "vmap over a function with no inputs. The latter is unsupported."
        )
    leaves, spec = tree_flatten(args)
    dims = broadcast_prefix(in_dims, spec)
    if dims is None:
        raise ValueError(
            f"{call}: in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    checked: list[int | None] = []
    sizes = []
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is None:
            checked.append(None)
            continue
        if not isinstance(dim, int):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but in_dim must be either an integer dimension or "
                "None."
            )
        if not isinstance(leaf, Tensor):
            raise ValueError(
                f"{call}: Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot "
                "vmap over non-Tensor arguments, please use None as the respective in_dim"
            )
        if not -leaf.ndim <= dim < leaf.ndim:
            raise ValueError(
                f"{call}: Got in_dim={dim} for some input, but that input is a Tensor of dimensionality "
                f"{leaf.ndim} so expected in_dim to satisfy -{leaf.ndim} <= in_dim < {leaf.ndim}."
            )
        checked.append(dim % leaf.ndim)
        sizes.append(leaf._shape[dim])
    if not sizes:
        raise ValueError(f"{call.replace(call, 'vmap')}: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(
            "vmap: Expected all tensors to have the same size in the mapped dimension, got sizes "
            f"{sizes} for the mapped dimension"
        )
    return sizes[0], leaves, checked, spec


def _run(
    func: Callable[..., Any],
    size: int,
    leaves: list[Any],
    dims: list[Any],
    spec: Tree,
    kwargs: dict[str, Any],
    out_dims: Any,
    randomness: str,
    name: str,
) -> Any:
    """Call the function once, on batched tensors."""
    level = BatchLevel(size, randomness)
    with level, entered(level, batch=True):
        args = [
            leaf if dim is None else wrap(leaf, dim, level)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        result = func(*tree_unflatten(args, spec), **kwargs)
        outputs, out_spec = tree_flatten(result)
        where = _out_dims(out_dims, out_spec, name)
        shown = [
            _behind(output, dim, level, name) for output, dim in zip(outputs, where, strict=True)
        ]
    final = [
        _placed(tensor, bdim, dim, size) for (tensor, bdim), dim in zip(shown, where, strict=True)
    ]
    return tree_unflatten(final, out_spec)


def _out_dims(out_dims: Any, spec: Tree, name: str) -> list[Any]:
    for dim in tree_flatten(out_dims)[0]:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                f"vmap({name}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python "
                "collection of ints representing where in the outputs the vmapped dimension should appear."
            )
    given = tuple(out_dims) if isinstance(out_dims, list) and spec.type is tuple else out_dims
    if isinstance(given, tuple) and spec.type is list:
        given = list(given)
    if isinstance(given, tuple) and len(given) == 1 and spec.type is None:
        given = given[0]
    where = broadcast_prefix(given, spec)
    if where is None:
        raise ValueError(
            f"vmap({name}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the "
            f"structure of `outputs`. out_dims has structure {tree_flatten(out_dims)[1]} but outputs has "
            f"structure {spec}."
        )
    return where


def _behind(output: Any, dim: int | None, level: BatchLevel, name: str) -> tuple[Any, int | None]:
    """Return the tensor behind a result, and its hidden dimension."""
    if dim is None:
        if is_batched(output, level):
            raise ValueError(
                f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None"
            )
        return output, None
    if not isinstance(output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(output)}. Did you mean "
            "to set out_dims= to None for output?"
        )
    if is_batched(output, level):
        return output.value, output.bdim
    return output, None


def _placed(tensor: Any, bdim: int | None, dim: int | None, size: int) -> Any:
    """Return a result with the samples along the dimension that was asked for."""
    if dim is None:
        return tensor
    if bdim is None:
        tensor = tensor.expand((size, *tensor._shape))
        bdim = 0
    ndim = tensor.ndim
    if not -ndim <= dim < ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
        )
    return moved(tensor, bdim, dim % ndim)


def batched_everywhere(tensor: Any, levels: tuple[Any, ...]) -> Any:
    """Return a tensor that hides a dimension at every one of the levels, outermost first."""
    for level in levels:
        if not _hides(tensor, level):
            tensor = _insert(tensor, level)
    return tensor


def _hides(tensor: Any, level: BatchLevel) -> bool:
    while getattr(tensor, "_batched", False):
        if tensor.level is level:
            return True
        tensor = tensor.value
    return False


def _insert(tensor: Any, level: BatchLevel) -> Any:
    """Return a tensor that is the same for all samples of a level, batched at that level too."""
    if getattr(tensor, "_batched", False) and tensor.level.position > level.position:
        inner = _insert(tensor.value, level)
        return wrap(inner, tensor.bdim, tensor.level)
    return wrap(front(tensor, level), 0, level)
