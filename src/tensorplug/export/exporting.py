"""From a module and its arguments to a program."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Mapping
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.autograd.transforms.pytree import (
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from tensorplug.core import Tensor
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType
from tensorplug.core.ops.creation.creation import zeros
from tensorplug.graph import Graph, Uncapturable
from tensorplug.graph.capture import Recorder, named_tensors, settled
from tensorplug.graph.data_sizes import DataSizes
from tensorplug.graph.symbolic import at, generalize, same
from tensorplug.nn import Module

from ..random import get_rng_state, set_rng_state
from .dims import Dim, DimHint
from .program import ExportedProgram, Leaf

#: Sizes that vary, of whose products others may be sums; where there are more, others are sums of them alone.
_MOST = 4
#: Returns the graph for some sizes, and these with those that data has no say in.
_Captured = Callable[[Mapping[str, int]], tuple[dict[str, int], Graph]]
_PLAIN = (int, float, complex, bool, str, type(None), DType, Device)


def export(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any] | None = None,
    *,
    dynamic_shapes: Any = None,
    strict: bool = False,
    prefer_deferred_runtime_asserts_over_guards: bool = False,
) -> ExportedProgram:
    """Return what a module does with arguments like these as a program.

    Parameters
    ----------
    mod : Module
        It runs with the arguments, and some times with others, in which each ``Dim``, and each size that
        depends on data, takes a second value; its state and the random numbers to come are as before.
    args, kwargs
        Tensors in any nesting of tuples, lists and dicts, and plain values, which the program holds for.
    dynamic_shapes : tuple or dict, optional
        For each argument, or by name: ``{dim: Dim}``, or a ``Dim``, ``Dim.AUTO`` or None for each dimension.
    strict : bool
        Accepted as torch has it.
    prefer_deferred_runtime_asserts_over_guards : bool
        Whether the module may read data (``item()``, ``if tensor``, up to 64 numbers at once): the program
        then holds for data of which the same is read, and raises ``RuntimeError`` for other.

    Raises
    ------
    Uncapturable
        If what the module does depends on its arguments' data. Sizes may: those of ``nonzero``, ``x[mask]``,
        ``masked_select``, ``unique`` and ``repeat_interleave`` are found in each run. What it reads of its
        buffers and constants, which it doesn't write, it may: the program raises ``RuntimeError`` once these
        were changed.
    ValueError
        If it does something else for other sizes.

    Examples
    --------
    >>> import io
    >>> import tensorplug as tp
    >>> program = tp.export.export(tp.nn.ReLU(), (tp.ones(2),))
    >>> file = io.BytesIO()
    >>> tp.export.save(program, file)
    >>> tp.export.load(file).module()(tp.tensor([-1.0, 1.0]))
    tensor([0., 1.])
    """
    args, kwargs = _each_its_own(mod, args, dict(sorted((kwargs or {}).items())))
    hints = {hint for hint in tree_leaves(dynamic_shapes) if isinstance(hint, DimHint)}
    # Sizes with hints are first taken to be independent, then equal where they were, then to stay.
    asserted = prefer_deferred_runtime_asserts_over_guards
    tries: list[str | None] = ["s{place}_{number}", "s{size}"] if hints - {Dim.STATIC} else [None]
    if Dim.AUTO in hints:
        tries.append(None)
    for name in tries[:-1]:
        try:
            shapes = _dynamic(mod, args, kwargs, dynamic_shapes, name)
            return _exported(mod, args, kwargs, shapes, asserted)
        except (ValueError, RuntimeError):
            pass
    shapes = _dynamic(mod, args, kwargs, dynamic_shapes, tries[-1])
    return _exported(mod, args, kwargs, shapes, asserted)


def _each_its_own(
    mod: Module, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return arguments with a copy of each tensor that is state or stands in a second place.

    Calls of the program may have other tensors there.
    """
    seen = {id(tensor) for tensor in (*mod.parameters(), *mod.buffers())}

    def own(leaf: Any) -> Any:
        if isinstance(leaf, Tensor) and id(leaf) in seen:
            return leaf.detach().clone().requires_grad_(leaf.requires_grad)
        seen.add(id(leaf))
        return leaf

    owned: tuple[tuple[Any, ...], dict[str, Any]] = tree_map(own, (tuple(args), kwargs))
    return owned


def _exported(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    shapes: dict[int, dict[int, Dim]],
    asserted: bool,
    is_tied: bool = False,
) -> ExportedProgram:
    leaves, tree = tree_flatten((tuple(args), kwargs))
    dims: dict[str, Dim] = {}
    sizes: dict[str, int] = {}
    for tensor in [leaf for leaf in leaves if isinstance(leaf, Tensor)]:
        for number, dim in shapes.get(id(tensor), {}).items():
            dims.setdefault(dim.name, dim)
            if sizes.setdefault(dim.name, tensor.shape[number]) != tensor.shape[number]:
                raise ValueError(f"export(): {dim} is {sizes[dim.name]} and {tensor.shape[number]}")

    def captured(setting: Mapping[str, int], data_sizes: DataSizes) -> tuple[Graph, Any]:
        def resized(leaf: Any) -> Any:
            found = shapes.get(id(leaf), {})
            if all([setting[dim.name] == leaf.shape[number] for number, dim in found.items()]):
                return leaf
            shape = list(leaf.shape)
            for number, dim in found.items():
                shape[number] = setting[dim.name]
            return zeros(shape, dtype=leaf.dtype, device=leaf.device)

        given = [resized(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves]
        own, named = tree_unflatten(given, tree)
        return _captured(mod, own, named, asserted, data_sizes)

    of_data = DataSizes()
    first, outputs = captured(sizes, of_data)
    names = of_data.names_for(dims, is_tied)
    for name, size in zip(names, of_data.found, strict=True):
        dims.setdefault(name, Dim(name))
        sizes.setdefault(name, max(size, 2))

    def graph_at(setting: Mapping[str, int]) -> tuple[dict[str, int], Graph]:
        if not names and setting == sizes:
            return sizes, first
        now = DataSizes(names, setting)
        graph = captured(setting, now)[0]
        return {**setting, **now.fixed}, graph

    try:
        graph = _general(graph_at, dims, sizes) if sizes else first
    except Exception:
        if is_tied or len(set(of_data.names_for(dims, is_tied=True))) == len(names):
            raise
        # Sizes of data that were equal are taken to be so always.
        return _exported(mod, args, kwargs, shapes, asserted, is_tied=True)
    for name in [name for name in dict.fromkeys(names) if name in dims]:
        dims[name] = Dim(name, min=_least(graph_at, graph, sizes, name))
    inputs = tree_unflatten([Leaf() if isinstance(leaf, Tensor) else leaf for leaf in leaves], tree)
    return ExportedProgram(graph, dims, inputs, outputs)


def _general(
    graph_at: _Captured,
    dims: dict[str, Dim],
    sizes: dict[str, int],
) -> Graph:
    """Return the graph for all sizes; take out those that turn out to be fixed."""
    others, beyond = (
        {
            name: _other(dims[name], size, number + far)
            for number, (name, size) in enumerate(sizes.items())
        }
        for far in (0, 5)
    )
    settings: list[dict[str, int]]
    if len(sizes) > _MOST:
        settings = [sizes, *[{**sizes, name: other} for name, other in others.items()]]
    else:
        pairs = [(size, others[name]) for name, size in sizes.items()]
        settings = [dict(zip(sizes, chosen, strict=True)) for chosen in itertools.product(*pairs)]
    found = [graph_at(setting) for setting in settings]
    fixed = [name for name in sizes if len({setting[name] for setting, _ in found}) == 1]
    for name in fixed:
        for setting, _ in found:
            del setting[name]
        del dims[name]
    graph = generalize(found)
    if graph is None or not same(at(graph, beyond), graph_at(beyond)[1]):
        raise ValueError(
            f"export(): the module does something else for other sizes of {', '.join(sizes)}; leave those "
            "out of dynamic_shapes, or write the program so that sizes decide nothing"
        )
    return graph


def _least(
    graph_at: _Captured,
    graph: Graph,
    sizes: Mapping[str, int],
    name: str,
) -> int:
    """Return the least size for which the program is that of larger ones; it need not be so for 1 or 0."""
    least = 2
    for size in (1, 0):
        try:
            setting, found = graph_at({**sizes, name: size})
            if not same(at(graph, setting), found):
                break
        except Exception:  # what the program does of so few is its own affair
            break
        least = size
    return least


def _other(dim: Dim, size: int, number: int) -> int:
    """Return another size that a dimension may have."""
    for step in (number + 1, -(number + 1), 1, -1):
        other = size + step
        if other >= max(dim.min, 1) and (dim.max is None or other <= dim.max):
            return other
    raise ValueError(f"export(): {dim} leaves no other size than {size}")


def _captured(
    mod: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    asserted: bool,
    data_sizes: DataSizes,
) -> tuple[Graph, Any]:
    kept = [(buffer, buffer.clone()) for buffer in mod.buffers()]
    random = get_rng_state()
    results: list[Any] = []

    def put_back() -> None:
        set_rng_state(random)
        with no_grad():
            for buffer, before in kept:
                buffer.copy_(before)

    def run(recorder: Recorder) -> Graph:
        put_back()  # what a former run wrote
        recorder.data_sizes = data_sizes.anew()
        recorder.add_state(mod)
        names = {id(tensor): name for name, tensor in named_tensors(mod, args, kwargs)}
        for leaf in tree_leaves((args, kwargs)):  # in the order in which calls are bound
            if isinstance(leaf, Tensor):
                recorder.add(names[id(leaf)], leaf, "input")
        with recorder.active():
            result = mod(*args, **kwargs)
        found, tree = tree_flatten(result)
        results[:] = [tree_unflatten(list(range(len(found))), tree)]
        for leaf in found:
            if not isinstance(leaf, (Tensor, *_PLAIN)):
                raise Uncapturable(f"the module returns a {type(leaf).__name__}")
        return recorder.finished(found)

    try:
        graph = settled(run, asserted=asserted)
    finally:
        put_back()
    graph.remove_unused(data_sizes.nodes)
    return graph, results[0]


def _dynamic(
    mod: Any, args: Any, kwargs: Any, given: Any, hinted: str | None
) -> dict[int, dict[int, Dim]]:
    """Return for each tensor, by id, which of its dimensions may differ.

    Those with hints are called as `hinted` says; with None those stay as they are that can.
    """
    found: dict[int, dict[int, Dim]] = {}
    if not given:
        return found
    names = list(inspect.signature(mod.forward).bind(*args, **kwargs).arguments.items())
    if isinstance(given, Mapping):
        pairs = [(value, given.get(name)) for name, value in names]
    else:
        pairs = list(zip([value for _, value in names], given, strict=True))

    def add(value: Any, spec: Any) -> None:
        if spec is None:
            return
        if isinstance(value, Tensor):
            items = spec.items() if isinstance(spec, Mapping) else enumerate(spec)
            for number, dim in items:
                size = value.shape[number]
                if isinstance(dim, DimHint):
                    form = hinted if hinted or dim is not Dim.DYNAMIC else "s{size}"
                    if form is None or dim is Dim.STATIC or (dim is Dim.AUTO and size < 2):
                        continue
                    dim = Dim(form.format(place=len(found), number=number, size=size))
                if isinstance(dim, Dim):
                    found.setdefault(id(value), {})[number % value.ndim] = dim
                elif dim is not None and not (isinstance(dim, int) and dim == value.shape[number]):
                    raise TypeError(
                        f"export(): a dimension is a Dim, its size or None, got {dim!r}"
                    )
        elif isinstance(value, Mapping):
            for key, item in value.items():
                add(item, spec.get(key))
        else:
            for item, part in zip(value, spec, strict=True):
                add(item, part)

    for value, spec in pairs:
        add(value, spec)
    return found
