"""Embeddings: tables looked up by row."""

from __future__ import annotations

from typing import Any, Self

from tensorplug.autograd import no_grad
from tensorplug.core import Device, DType, Tensor
from tensorplug.core.ops import empty

from .. import functional as F, init
from ..module import Module
from ..parameter import Parameter

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    weight: Parameter
    padding_idx: int | None

    def _make(
        self, rows: int, features: int, given: Tensor | None, frozen: bool, device: Any, dtype: Any
    ) -> None:
        if given is None:
            table = empty(rows, features, device=device, dtype=dtype)
            self.weight = Parameter(table, requires_grad=not frozen)
            self.reset_parameters()
        else:
            if list(given.shape) != [rows, features]:
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(given, requires_grad=not frozen)

    def _checked_padding(
        self, padding_idx: int | None, rows: int, name: str = "Padding_idx"
    ) -> int | None:
        if padding_idx is None:
            return None
        if not -rows <= padding_idx < rows:
            raise AssertionError(f"{name} must be within num_embeddings")
        return padding_idx % rows

    def reset_parameters(self) -> None:
        """Draw the table from a normal distribution; the padding row is zero."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """A table whose rows are looked up by their numbers.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Rows and columns.
    padding_idx : int, optional
        A row that is zero at first and gets no gradient.
    max_norm : float, optional
        Rows of a larger norm are scaled down to it when they are looked up.
    norm_type : float
        Which norm.
    scale_grad_by_freq : bool
        Divide a row's gradient by how often it is looked up in the batch.
    sparse : bool
        Whether the gradient of the weight is a sparse tensor, of the rows that were looked up.
    device, dtype
        Where and of which dtype the table is made.

    Attributes
    ----------
    weight : Parameter
        (num_embeddings, embedding_dim), from the standard normal distribution.

    Examples
    --------
    >>> import tensorplug as tp
    >>> Embedding(10, 3)(tp.tensor([[1, 2], [4, 5]])).shape
    Size([2, 2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = self._checked_padding(padding_idx, num_embeddings)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make(num_embeddings, embedding_dim, _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows that `input` names."""
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Return a module over a given table, by default one that is not trained."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        return cls(
            rows,
            columns,
            padding_idx,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            sparse,
            _weight=embeddings,
            _freeze=freeze,
        )

    def extra_repr(self) -> str:
        """Return the options."""
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        if self.sparse:
            parts.append("sparse=True")
        return ", ".join(parts)


class EmbeddingBag(_Table):
    """Sums, means or maxima over bags of rows of a table.

    Parameters
    ----------
    num_embeddings, embedding_dim, max_norm, norm_type, scale_grad_by_freq, sparse, padding_idx
        See :class:`Embedding`; padding rows take no part in a bag.
    mode : {"sum", "mean", "max"}
        What is made of a bag.
    include_last_offset : bool
        Whether the last offset is the end of the last bag.
    device, dtype
        Where and of which dtype the table is made.

    Examples
    --------
    >>> import tensorplug as tp
    >>> bag = EmbeddingBag(10, 3, mode="sum")
    >>> bag(tp.tensor([1, 2, 4, 5, 4]), tp.tensor([0, 4])).shape
    Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device | str | None = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.padding_idx = self._checked_padding(padding_idx, num_embeddings, "padding_idx")
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset
        self._make(num_embeddings, embedding_dim, _weight, False, device, dtype)

    def forward(
        self,
        input: Tensor,
        offsets: Tensor | None = None,
        per_sample_weights: Tensor | None = None,
    ) -> Tensor:
        """Return one row per bag; see :func:`~tensorplug.nn.functional.embedding`."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Return a module over a given table, by default one that is not trained."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, columns = embeddings.shape
        bag = cls(
            rows,
            columns,
            max_norm,
            norm_type,
            scale_grad_by_freq,
            mode,
            sparse,
            embeddings,
            include_last_offset,
            padding_idx,
        )
        bag.weight.requires_grad_(not freeze)
        return bag

    def extra_repr(self) -> str:
        """Return the options."""
        parts = [f"{self.num_embeddings}, {self.embedding_dim}"]
        if self.max_norm is not None:
            parts.append(f"max_norm={self.max_norm}")
        if self.norm_type != 2:
            parts.append(f"norm_type={self.norm_type}")
        if self.scale_grad_by_freq:
            parts.append(f"scale_grad_by_freq={self.scale_grad_by_freq}")
        parts.append(f"mode={self.mode!r}")
        if self.padding_idx is not None:
            parts.append(f"padding_idx={self.padding_idx}")
        return ", ".join(parts)
