"""Attributes and methods of Tensor that have one answer here: tensors are dense, and never quantized.

Programs ask all the same, so the answers are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, cast

from .formats import layout, strided
from .tensor_methods import TensorMethods

if TYPE_CHECKING:
    from .tensor import Tensor


class TensorFacts(TensorMethods):
    """Base of Tensor with what does not depend on the tensor, or hardly."""

    __slots__ = ()

    @property
    def layout(self) -> layout:
        """How elements are stored: always ``tp.strided``."""
        return strided

    @property
    def is_sparse(self) -> bool:
        """Whether only some elements are stored: never."""
        return False

    @property
    def is_sparse_csr(self) -> bool:
        """Whether only some elements are stored, row by row: never."""
        return False

    @property
    def is_quantized(self) -> bool:
        """Whether elements stand for multiples of a scale: never."""
        return False

    @property
    def is_nested(self) -> bool:
        """Whether rows differ in length: never."""
        return False

    @property
    def is_mkldnn(self) -> bool:
        """Whether a library keeps the memory in a layout of its own: never."""
        return False

    @property
    def name(self) -> str | None:
        """The tensor's name: it has none."""
        return None

    def is_pinned(self, device: Any = None) -> bool:
        """Return whether the host memory is locked for copies: never."""
        return False

    def pin_memory(self, device: Any = None) -> Self:
        """Return the tensor itself: copies to devices need no locked memory."""
        return self

    def is_shared(self) -> bool:
        """Return whether other processes see the memory: never."""
        return False

    def is_distributed(self) -> bool:
        """Return whether parts of the tensor live elsewhere: never."""
        return False

    def is_conj(self) -> bool:
        """Return whether a conjugation is still to be done: never, ``conj()`` does it at once."""
        return False

    def is_neg(self) -> bool:
        """Return whether a negation is still to be done: never."""
        return False

    def resolve_conj(self) -> Self:
        """Return the tensor itself: no conjugation is ever still to be done."""
        return self

    def resolve_neg(self) -> Self:
        """Return the tensor itself: no negation is ever still to be done."""
        return self

    def to_dense(self, dtype: Any = None, *, masked_grad: bool = True) -> Any:
        """Return the tensor, converted if a dtype is given: it is dense already."""
        return self if dtype is None else cast(Any, self).to(dtype)

    def get_device(self) -> int:
        """Return the index of the device; -1 where there is one device without an index."""
        index = self._kind.device.index
        return -1 if index is None else index

    def is_nonzero(self) -> bool:
        """Return whether the only element is not zero."""
        return bool(self)

    def is_same_size(self, other: Tensor) -> bool:
        """Return whether another tensor has the same shape."""
        return self._shape == other._shape

    def new(self, *data: Any) -> Any:
        """Return a tensor of this dtype and device from sizes or a sequence, as ``tp.Tensor``."""
        from .creation import legacy_of

        return legacy_of(data, self._kind.dtype, self._kind.device)

    def apply_(self, function: Callable[[Any], Any]) -> Self:
        """Replace each element x by ``function(x)``, one by one; for "cpu" tensors, and slow."""
        from .creation import tensor

        this: Any = self
        if this.device.type != "cpu":
            raise TypeError(f"apply_ is only implemented on CPU tensors, got one on {this.device}")
        values = [function(value) for value in this.detach().flatten().tolist()]
        this.copy_(tensor(values, dtype=this.dtype).reshape(self._shape))
        return self
