"""Attributes and methods of Tensor that have one answer here: tensors are dense, and never quantized.

Programs ask all the same, so the answers are there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self, cast

from .creation import legacy_of, tensor
from .layout import layout, strided
from .methods import TensorMethods

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
        """Return whether this host memory is locked for copies to a device."""
        from ..device.pinned_memory import is_pinned  # on first use: saves import time

        return is_pinned(self, device)

    def pin_memory(self, device: Any = None) -> Any:
        """Return the contents in host memory that is locked for fast copies to a device.

        The tensor itself is returned where no loaded device makes a difference.

        Parameters
        ----------
        device : Device or str, optional
            Which device; by default the first loaded one that offers locked memory.
        """
        from ..device.pinned_memory import pin  # on first use: saves import time

        return pin(self, device)

    def record_stream(self, stream: Any) -> None:
        """Keep the tensor's memory until a stream that uses it is done.

        A device whose work is not queued on streams does nothing.

        Parameters
        ----------
        stream : Stream
            Of the tensor's device type, other than the one on which it was made.
        """
        self._key.runtime.record_stream(self._array, stream)

    def is_shared(self) -> bool:
        """Return whether other processes can see the memory."""
        from .shared_memory import is_shared  # on first use: saves import time

        return is_shared(self)

    def share_memory_(self) -> Self:
        """Move the tensor to memory that other processes can share; return it.

        A process that the tensor is then handed to, as an argument, in a queue or by "fork", sees
        each write to it, and writes to it itself. Views that were made before keep the old memory.

        Raises
        ------
        NotImplementedError
            If the device, or the system, has no such memory.

        Examples
        --------
        >>> import tensorplug as tp
        >>> tp.zeros(2).share_memory_().is_shared()
        True
        """
        from .shared_memory import share  # on first use: saves import time

        share(self)
        return self

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
        index = self._key.device.index
        return -1 if index is None else index

    def is_nonzero(self) -> bool:
        """Return whether the only element is not zero."""
        return bool(self)

    def is_same_size(self, other: Tensor) -> bool:
        """Return whether another tensor has the same shape."""
        return self._shape == other._shape

    def new(self, *data: Any) -> Any:
        """Return a tensor of this dtype and device from sizes or a sequence, as ``tp.Tensor``."""
        return legacy_of(data, self._key.dtype, self._key.device)

    def apply_(self, function: Callable[[Any], Any]) -> Self:
        """Replace each element x by ``function(x)``, one by one; for "cpu" tensors, and slow."""
        this: Any = self
        if this.device.type != "cpu":
            raise TypeError(f"apply_ is only implemented on CPU tensors, got one on {this.device}")
        values = [function(value) for value in this.detach().flatten().tolist()]
        this.copy_(tensor(values, dtype=this.dtype).reshape(self._shape))
        return self
