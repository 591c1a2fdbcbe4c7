"""Views for a backend with memory of its own: where an element of a view lies.

A device whose array library has no strides of its own, or none at all, describes an array by a
store, an offset and strides. The ops that make views then are arithmetic on these numbers, the same
for every such backend: :func:`view_kernels` makes their kernels from one function.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensorplug.core.device import meta
from tensorplug.core.device.dtypes import DType
from tensorplug.core.dispatch import op_registry
from tensorplug.core.tensor.shapes import Shape

from .tables import KernelTable


@dataclass(frozen=True, slots=True)
class Layout:
    """How an array lies in its store, in elements.

    Attributes
    ----------
    shape, strides : tuple of int
        The size, and the step in the store, of each dimension.
    offset : int
        Where the first element is.
    dtype : DType
        The type of the elements; a view may have another than its base.
    """

    shape: Shape
    strides: Shape
    offset: int
    dtype: DType


def view_layout(op: str, layout: Layout, *values: Any) -> Layout:
    """Return the layout of what a view op makes of an array.

    Parameters
    ----------
    op : str
        The op's name, such as ``"permute"``.
    layout : Layout
        The array's.
    *values
        The kernel's arguments behind the array.

    Examples
    --------
    >>> from tensorplug.plugin import dtype_named
    >>> rows = Layout((2, 3), (3, 1), 0, dtype_named("float32"))
    >>> view_layout("permute", rows, (1, 0)).strides
    (1, 3)
    """
    return _view_layout(op_registry.get_op(op), layout, values)


def _view_layout(op: op_registry.Op, layout: Layout, values: tuple[Any, ...]) -> Layout:
    array = meta.MetaArray(layout.shape, layout.dtype, layout.strides, layout.offset)
    result = meta.view_of(op, array, values)
    return Layout(result.shape, result.strides, result.offset, result.dtype)


def view_kernels(
    table: KernelTable,
    layout_of: Callable[[Any], Layout],
    relaid: Callable[[Any, Layout], Any],
) -> None:
    """Add a kernel for each view op of core to a table.

    Parameters
    ----------
    table : KernelTable
        Where the kernels go.
    layout_of : callable
        ``layout_of(array)`` returns the array's layout.
    relaid : callable
        ``relaid(array, layout)`` returns an array over the same store with another layout.
    """
    for name in meta.view_ops():
        table.add(name, _view_kernel(op_registry.get_op(name), layout_of, relaid))


def _view_kernel(
    op: op_registry.Op,
    layout_of: Callable[[Any], Layout],
    relaid: Callable[[Any, Layout], Any],
) -> Callable[..., Any]:
    def kernel(array: Any, *values: Any) -> Any:
        return relaid(array, _view_layout(op, layout_of(array), values))

    return kernel
