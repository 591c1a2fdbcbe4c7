"""Sparse tensors whose rows, or columns, are stored one after another: CSR, CSC, BSR and BSC.

The four are one class. Where each row (of CSR and BSR) or column (of CSC and BSC) begins is `_starts`,
(batch, rows + 1); the column or row of what is stored in it is `_plain`, (batch, nnz); the values are (batch,
nnz, block, dense). BSR and BSC store blocks of one size, so that rows and columns are numbers of blocks.
"""

from __future__ import annotations

from typing import Any, cast

from tensorplug.core.tensor.layout import layout
from tensorplug.core.tensor.shapes import Shape

from .layouts import CompressedLayout, not_of
from .tensors import SparseTensor


class CompressedTensor(SparseTensor):
    """A sparse matrix, or a batch of them, that is stored row by row or column by column."""

    __slots__ = ("_layout", "_plain", "_starts")

    _layout: CompressedLayout
    _starts: Any
    _plain: Any

    @classmethod
    def of(
        cls, shown: layout, compressed_indices: Any, plain_indices: Any, values: Any, shape: Shape
    ) -> CompressedTensor:
        """Return the tensor of a layout and its parts."""
        tensor = cls._bare(values, shape, shown)
        tensor._layout = cast(CompressedLayout, shown)
        tensor._starts = compressed_indices
        tensor._plain = plain_indices
        return tensor

    def _parts(self) -> tuple[Any, ...]:
        return self._starts, self._plain, self._stored

    def _with(self, parts: tuple[Any, ...]) -> Any:
        starts, plain, values = parts
        return CompressedTensor.of(self._layout, starts, plain, values, self._shape)

    def _saved(self) -> tuple[Any, ...]:
        return *self._parts(), self.shape

    # --- what it is ---

    @property
    def _batch(self) -> int:
        """How many dimensions number the matrices of a batch."""
        return len(self._starts._shape) - 1

    @property
    def _blocksize(self) -> tuple[int, int]:
        """Rows and columns of what is stored at one place."""
        if not self._layout.blocked:
            return 1, 1
        rows, columns = self._stored._shape[self._batch + 1 : self._batch + 3]
        return max(rows, 1), max(columns, 1)

    def sparse_dim(self) -> int:
        """Return how many dimensions are addressed by indices: two."""
        return 2

    def dense_dim(self) -> int:
        """Return how many dimensions each value has, beside those of a block."""
        return len(self._shape) - self._batch - 2

    def _nnz(self) -> int:
        """Return how many elements, or blocks, each matrix stores."""
        return int(self._plain._shape[-1])

    def _index(self, name: str, number: int) -> Any:
        if self._layout.names[number] != name:
            kind = "column" if self._layout.by_rows else "row"
            raise not_of(name, f"sparse {kind} compressed", self._layout)
        return self._parts()[number]

    def crow_indices(self) -> Any:
        """Return where each row begins, and the last one ends: (batch, rows + 1)."""
        return self._index("crow_indices", 0)

    def col_indices(self) -> Any:
        """Return the column of each element: (batch, nnz)."""
        return self._index("col_indices", 1)

    def ccol_indices(self) -> Any:
        """Return where each column begins, and the last one ends: (batch, columns + 1)."""
        return self._index("ccol_indices", 0)

    def row_indices(self) -> Any:
        """Return the row of each element: (batch, nnz)."""
        return self._index("row_indices", 1)

    @property
    def nbytes(self) -> int:
        """How many bytes the parts have."""
        return sum([int(part.nbytes) for part in self._parts()])

    def stride(self, dim: int | None = None) -> Any:
        """Raise: elements do not lie at steps, and those stored row by row are no dense tensor's."""
        raise RuntimeError(f"Sparse {self._kind} tensors do not have strides; their parts have")

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Raise: see :meth:`stride`."""
        raise RuntimeError(
            f"Sparse {self._kind} tensors do not have is_contiguous; their parts have"
        )

    @property
    def _kind(self) -> str:
        return self._layout.name.removeprefix("sparse_").upper()

    # --- conversions ---

    def _dense(self) -> Any:
        from .structure import coo_of_compressed, dense_of_coo  # they need this module

        return dense_of_coo(coo_of_compressed(self))
