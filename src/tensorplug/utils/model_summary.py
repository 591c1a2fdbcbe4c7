"""What a model is made of: modules, shapes, parameters and multiply-adds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from math import prod
from operator import setitem
from typing import Any, cast

from tensorplug.autograd import no_grad
from tensorplug.autograd.graph.handles import RemovableHandle
from tensorplug.core import Tensor
from tensorplug.core.contexts import Block, Steps
from tensorplug.core.device.device import Device
from tensorplug.core.device.dtypes import DType, get_default_dtype
from tensorplug.core.dispatch.layers import Layer
from tensorplug.core.ops.creation.creation import empty
from tensorplug.core.ops.matmul.products import matmul
from tensorplug.nn import Module
from tensorplug.nn.functional_call import functional_call
from tensorplug.nn.parameter import is_lazy

from . import _pytree

_MEGABYTE = 1e6
_product = cast(Any, matmul).op  # on "meta" all products come down to this primitive
_HEADINGS = ("module", "output shape", "parameters", "multiply-adds")


@dataclass
class Row:
    """One call of a module; `parameters` and `multiply_adds` are those of no module below it."""

    name: str
    kind: str
    depth: int
    path: str
    shapes: tuple[tuple[int, ...], ...] = ()
    parameters: int = 0
    multiply_adds: int = 0


@dataclass
class Summary:
    """What :func:`summary` returns; ``print`` and notebooks show it as a table.

    Attributes
    ----------
    rows : list of Row
        The modules in the order of their calls.
    parameters, trainable : int
        The elements of all parameters, and of those that require grad.
    multiply_adds : int
        Of one forward pass: one multiplication with one addition counts once. What is counted are
        products of matrices, which convolutions, attention and recurrent networks consist of.
    parameter_bytes, output_bytes : int
        What all parameters take, and the outputs of the modules that call no others.
    """

    rows: list[Row]
    parameters: int
    trainable: int
    multiply_adds: int
    parameter_bytes: int
    output_bytes: int

    def _cells(self) -> Iterator[tuple[str, str, str, str]]:
        for row in self.rows:
            name = f"{row.name} {row.kind}" if row.name else row.kind
            shapes = ", ".join(str(list(shape)) for shape in row.shapes)
            yield (
                "  " * row.depth + name,
                shapes,
                _number(row.parameters),
                _number(row.multiply_adds),
            )

    def _totals(self) -> list[str]:
        trainable = (
            "all trainable"
            if self.trainable == self.parameters
            else f"{self.trainable:,} trainable"
        )
        return [
            f"parameters: {self.parameters:,} ({trainable}), {self.parameter_bytes / _MEGABYTE:,.2f} MB",
            f"multiply-adds: {self.multiply_adds:,}",
            f"outputs: {self.output_bytes / _MEGABYTE:,.2f} MB",
        ]

    def __repr__(self) -> str:
        table = [_HEADINGS, *self._cells()]
        widths = [max(len(row[column]) for row in table) for column in range(len(_HEADINGS))]
        lines = [
            "  ".join(
                cell.ljust(width) if column < 2 else cell.rjust(width)
                for column, (cell, width) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        line = "-" * max(map(len, lines))
        return "\n".join([lines[0], line, *lines[1:], line, *self._totals()])

    def _repr_html_(self) -> str:
        def row(cells: Sequence[str], tag: str) -> str:
            left, right = "text-align: left; white-space: pre", "text-align: right"
            styles = (left, left, right, right)
            texts = zip(cells, styles, strict=True)
            return "".join(
                f'<{tag} style="{style}">{escape(text)}</{tag}>' for text, style in texts
            )

        body = "".join(f"<tr>{row(cells, 'td')}</tr>" for cells in self._cells())
        totals = "<br>".join(map(escape, self._totals()))
        return (
            f"<table><thead><tr>{row(_HEADINGS, 'th')}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{totals}</p>"
        )


def summary(
    model: Module,
    input: Any,
    *args: Any,
    dtype: DType | None = None,
    **kwargs: Any,
) -> Summary:
    """Return what a model is made of, for an input.

    The model runs on "meta", without data: it takes no time and memory to speak of whatever its size,
    and its parameters, buffers and random numbers stay as they are.

    Parameters
    ----------
    model : Module
        On any device, also on "meta".
    input : Tensor, tuple of int, or a nest of tensors
        The first argument of the model, or the shape of one.
    *args, **kwargs
        Further arguments, tensors or others.
    dtype : dtype, optional
        Of an input that is given as a shape; the default dtype.

    Returns
    -------
    Summary
        Prints as a table.

    Raises
    ------
    ValueError
        If the model has lazy parameters, whose shapes are not known yet.
    RuntimeError
        If the model's forward depends on the values of tensors, or the input does not fit.

    Examples
    --------
    >>> import tensorplug as tp
    >>> model = tp.nn.Sequential(tp.nn.Linear(2, 32), tp.nn.ReLU(), tp.nn.Linear(32, 2))
    >>> tp.utils.summary(model, (8, 2))
    module      output shape  parameters  multiply-adds
    ---------------------------------------------------
    Sequential  [8, 2]
      0 Linear  [8, 32]               96            512
      1 ReLU    [8, 32]
      2 Linear  [8, 2]                66            512
    ---------------------------------------------------
    parameters: 162 (all trainable), 0.00 MB
    multiply-adds: 1,024
    outputs: 0.00 MB
    """
    lazy = next((name for name, p in model.named_parameters() if is_lazy(p)), None)
    if lazy is not None:
        raise ValueError(
            f"summary(): the shape of the parameter {lazy!r} is not known yet; call the model once"
        )
    if _is_shape(input):
        input = empty(input, dtype=dtype or get_default_dtype(), device="meta")
    arguments, named = _pytree.tree_map(_without_data, ((input, *args), kwargs))
    state = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    watch = _Watch(model)
    with no_grad(), Device("meta"), watch.hooked(), watch.active():
        functional_call(model, _pytree.tree_map(_without_data, state), arguments, named)
    return watch.result()


def _is_shape(value: Any) -> bool:
    return isinstance(value, (tuple, list)) and all(isinstance(n, int) for n in value)


def _without_data(value: Any) -> Any:
    return value.detach().to("meta") if isinstance(value, Tensor) else value


def _number(value: int) -> str:
    return f"{value:,}" if value else ""


class _Watch(Layer):
    """Notes the calls of a model's modules, and counts what each multiplies."""

    name = "summary"
    order = 100
    nested = True

    def __init__(self, model: Module) -> None:
        self._model = model
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._rows: list[Row] = []
        self._open: list[Row] = []
        self._callers: set[int] = set()  # of rows, by id, that have rows below them
        self._output_bytes = 0

    def hooked(self) -> Block:
        """Have the modules' calls noted within a ``with`` block."""

        def steps() -> tuple[Steps, Steps]:
            places: list[tuple[Any, Any]] = []
            for module in self._model.modules():
                places.append((module._forward_pre_hooks, self._begin))
                places.append((module._forward_hooks, self._end))
            handles = [(hooks, RemovableHandle(hooks).id, hook) for hooks, hook in places]
            return (
                [partial(setitem, hooks, key, hook) for hooks, key, hook in handles],
                [partial(hooks.pop, key, None) for hooks, key, _ in handles],
            )

        return Block(steps)

    def _begin(self, module: Module, args: Any) -> None:
        path = self._paths[id(module)]
        row = Row(path.rpartition(".")[2], type(module).__name__, len(self._open), path)
        self._callers.update(id(caller) for caller in self._open[-1:])
        self._rows.append(row)
        self._open.append(row)

    def _end(self, module: Module, args: Any, output: Any) -> None:
        row = self._open.pop()
        found = [value for value in _pytree.tree_leaves(output) if isinstance(value, Tensor)]
        row.shapes = tuple(tuple(tensor.shape) for tensor in found)
        if id(row) not in self._callers:
            self._output_bytes += sum(tensor.nbytes for tensor in found)

    def __call__(self, op: Any, args: Any, kwargs: Any, proceed: Any) -> Any:
        result = proceed(*args, **kwargs)
        if op is _product and self._open:
            self._open[-1].multiply_adds += prod(result.shape) * args[0].shape[-1]
        return result

    def result(self) -> Summary:
        """Return the table; a parameter counts at the innermost module that was called."""
        first: dict[str, Row] = {}
        for row in self._rows:
            first.setdefault(row.path, row)
        parameters = dict(self._model.named_parameters())
        for name, parameter in parameters.items():
            path = name.rpartition(".")[0]
            while path not in first:
                path = path.rpartition(".")[0]
            first[path].parameters += parameter.numel()
        values: Mapping[str, Tensor] = parameters
        return Summary(
            self._rows,
            sum(p.numel() for p in values.values()),
            sum(p.numel() for p in values.values() if p.requires_grad),
            sum(row.multiply_adds for row in self._rows),
            sum(p.nbytes for p in values.values()),
            self._output_bytes,
        )
