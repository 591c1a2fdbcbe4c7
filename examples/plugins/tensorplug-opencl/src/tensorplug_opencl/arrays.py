"""Arrays in OpenCL buffers."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from tensorplug.plugin import (
    ALL_DTYPES,
    DType,
    Layout,
    Shape,
    broadcast_shapes,
    contiguous_strides,
)

#: NumPy's names for the dtypes.
NATIVES = {
    dtype: np.dtype(ml_dtypes.bfloat16 if dtype.name == "bfloat16" else dtype.name)
    for dtype in ALL_DTYPES
}


class OpenCLArray:
    """An array: a buffer, and where in it the elements are.

    Attributes
    ----------
    buffer : pyopencl.Buffer
        The memory, of `nbytes` bytes, on device number `index`.
    shape, strides, offset : tuple of int, tuple of int, int
        Where the elements are, counted in elements.
    dtype : DType
        Their type.
    """

    __slots__ = ("buffer", "dtype", "index", "nbytes", "offset", "shape", "strides")

    def __init__(
        self,
        buffer: Any,
        nbytes: int,
        index: int,
        shape: Shape,
        strides: Shape,
        offset: int,
        dtype: DType,
    ) -> None:
        self.buffer = buffer
        self.nbytes = nbytes
        self.index = index
        self.shape = shape
        self.strides = strides
        self.offset = offset
        self.dtype = dtype

    def relaid(self, shape: Shape, strides: Shape, offset: int | None = None) -> OpenCLArray:
        """Return an array over the same memory."""
        place = self.offset if offset is None else offset
        return OpenCLArray(self.buffer, self.nbytes, self.index, shape, strides, place, self.dtype)

    def broadcast_to(self, shape: Shape) -> OpenCLArray:
        """Return a view of another shape whose repeated dimensions have stride 0."""
        if shape == self.shape:
            return self
        missing = len(shape) - len(self.shape)
        strides = tuple(
            [
                0 if size == 1 != wanted else stride
                for size, stride, wanted in zip(
                    self.shape, self.strides, shape[missing:], strict=True
                )
            ]
        )
        return self.relaid(shape, (0,) * missing + strides)

    def is_contiguous(self) -> bool:
        """Return whether the elements lie row by row without gaps."""
        return self.strides == contiguous_strides(self.shape)

    def __repr__(self) -> str:
        return f"OpenCLArray({self.shape}, {self.dtype.name})"


def layout_of(array: OpenCLArray) -> Layout:
    """Return how an array lies in its buffer."""
    return Layout(array.shape, array.strides, array.offset, array.dtype)


def relaid(array: OpenCLArray, layout: Layout) -> OpenCLArray:
    """Return an array over the same buffer with another layout.

    Raises
    ------
    RuntimeError
        If it would reach beyond the buffer.
    """
    last = layout.offset + sum(
        [(size - 1) * step for size, step in zip(layout.shape, layout.strides, strict=True)]
    )
    needed = (last + 1) * layout.dtype.itemsize
    if 0 not in layout.shape and needed > array.nbytes:
        raise RuntimeError(
            f"sizes {list(layout.shape)}, strides {list(layout.strides)}, storage offset "
            f"{layout.offset}, and itemsize {layout.dtype.itemsize} requiring a storage size of "
            f"{needed} are out of bounds for storage of size {array.nbytes}"
        )
    return OpenCLArray(
        array.buffer,
        array.nbytes,
        array.index,
        layout.shape,
        layout.strides,
        layout.offset,
        layout.dtype,
    )


def common_shape(*arrays: OpenCLArray) -> Shape:
    """Return the shape of arrays broadcast against each other."""
    return broadcast_shapes(*[array.shape for array in arrays])


# --- for the kernels ------------------------------------------------------------------------------

DIMS = 16


def packed(shape: Shape, *operands: tuple[Shape, int] | None) -> bytes:
    """Return the struct Layout of prelude.cl: one shape, and strides and offset of each operand.

    Neighbouring dimensions that all operands cross in one step become one.
    """
    places = [((0,) * len(shape), 0) if item is None else item for item in operands]
    places += [((0,) * len(shape), 0)] * (4 - len(places))
    sizes: list[int] = []
    steps: list[list[int]] = []  # by dimension, the strides of the four operands
    for d, size in enumerate(shape):
        if size == 1:
            continue
        own = [strides[d] for strides, _ in places]
        if sizes and steps[-1] == [size * stride for stride in own]:
            sizes[-1] *= size
            steps[-1] = own
        else:
            sizes.append(size)
            steps.append(own)
    if len(sizes) > DIMS:
        raise RuntimeError(f"opencl: arrays of {len(shape)} dimensions are more than {DIMS}")
    numbers = np.zeros(2 + DIMS + 4 * DIMS + 4, np.int64)
    numbers[0] = math.prod(shape)
    numbers[1] = len(sizes)
    numbers[2 : 2 + len(sizes)] = sizes
    for which in range(4):
        start = 2 + DIMS + which * DIMS
        numbers[start : start + len(sizes)] = [own[which] for own in steps]
        numbers[2 + 5 * DIMS + which] = places[which][1]
    return numbers.tobytes()


def place_of(array: OpenCLArray) -> tuple[Shape, int]:
    """Return strides and offset, as :func:`packed` takes them."""
    return array.strides, array.offset
