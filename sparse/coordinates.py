"""Sparse tensors of coordinates and values."""

from __future__ import annotations

from typing import Any, Self

from tensorplug.core.tensor.shapes import Shape, as_shape, normalize_dim
from tensorplug.core.tensor.tensor import Tensor

from .layouts import sparse_coo
from .tensors import SparseTensor


class CooTensor(SparseTensor):
    """A sparse tensor of coordinates and values.

    Its first dimensions, the sparse ones, are addressed by coordinates; each value is an element, or a dense
    tensor of the other dimensions. Elements at one place add up; `coalesce` makes them one.
    """

    __slots__ = ("_coalesced", "_where")

    _layout = sparse_coo
    _where: Any
    _coalesced: bool

    @classmethod
    def of(cls, indices: Any, values: Any, shape: Shape, coalesced: bool = False) -> CooTensor:
        """Return the tensor of coordinates, (sparse dims, nnz), and values, (nnz, dense dims)."""
        tensor = cls._bare(values, shape, cls._layout)
        tensor._where = indices
        tensor._coalesced = coalesced or values._shape[0] < 2
        return tensor

    def _parts(self) -> tuple[Any, ...]:
        return self._where, self._stored

    def _with(self, parts: tuple[Any, ...]) -> Any:
        indices, values = parts
        return CooTensor.of(indices, values, self._shape, self._coalesced)

    def _saved(self) -> tuple[Any, ...]:
        return self._where, self._stored, self.shape, self._coalesced

    def sparse_dim(self) -> int:
        """Return how many dimensions are addressed by coordinates."""
        return int(self._where._shape[0])

    _dimI = sparse_dim  # noqa: N815  torch's name
    _dimV = SparseTensor.dense_dim  # noqa: N815

    def _indices(self) -> Any:
        """Return the coordinates as they are stored."""
        return self._where

    def _values(self) -> Any:
        """Return the values as they are stored, without the way back to them."""
        return self._stored.detach()

    def is_coalesced(self) -> bool:
        """Return whether the coordinates are known to be in order, each of them once."""
        return self._coalesced

    def _coalesced_(self, coalesced: bool) -> Self:
        """Say whether the coordinates are in order, each of them once; return the tensor."""
        self._coalesced = coalesced
        return self

    def indices(self) -> Any:
        """Return the coordinates, (sparse dims, nnz).

        Raises
        ------
        RuntimeError
            If the tensor is not coalesced.
        """
        self._check_coalesced("indices")
        return self._where

    def values(self) -> Any:
        """Return the values, (nnz, dense dims).

        Raises
        ------
        RuntimeError
            If the tensor is not coalesced.
        """
        self._check_coalesced("values")
        return self._stored

    def _check_coalesced(self, name: str) -> None:
        if not self._coalesced:
            raise RuntimeError(
                f"Cannot get {name} on an uncoalesced tensor, please call .coalesce() first"
            )

    def coalesce(self) -> CooTensor:
        """Return the tensor with coordinates in order, each of them once; itself if it is so already."""
        if self._coalesced:
            return self
        from .structure import coalesced  # it needs this module

        return coalesced(self)

    def _dense(self) -> Any:
        from .structure import dense_of_coo  # it needs this module

        return dense_of_coo(self)

    def new(self, *data: Any, size: Any = None, device: Any = None) -> Any:
        """Return a sparse tensor of sizes, or of coordinates and values, of this dtype."""
        from .creation import sparse_coo_tensor  # it needs this module

        data = data if size is None else tuple(size)
        if data and isinstance(data[0], list):
            raise TypeError(
                "SparseTensor.new(sequence) only accepts sizes. Please use sparse_coo_tensor(), or "
                "make a strided tensor and convert it with to_sparse()"
            )
        parts = data if data and isinstance(data[0], Tensor) else ()
        if len(parts) == 1:
            raise TypeError("new(): expected indices beside values, or sizes, got one tensor")
        size = () if parts else (as_shape(data, "new") if data else (0,),)
        return sparse_coo_tensor(
            *parts, *size, dtype=self.dtype, device=self.device if device is None else device
        )

    def _gradient_over(self, gradient: Any) -> Any:
        if self._coalesced:
            return self._with_values(gradient)
        # Of elements at one place, which add up, each has the whole gradient of the place.
        from .structure import first_of_each

        return first_of_each(self._with_values(gradient))


def sparse_dim_of(tensor: CooTensor, dim: int, name: str) -> tuple[bool, int]:
    """Return whether a dimension is sparse, and its number among the sparse or dense ones."""
    dim = normalize_dim(dim, len(tensor._shape), name)
    sparse = tensor.sparse_dim()
    return (True, dim) if dim < sparse else (False, dim - sparse)
