"""Memory that several processes map, and tensors over it on their way through queues and pipes.

The memory has no name: it is reached through a file descriptor alone, so the operating system frees it
with its last user, however that one ends. Nothing has to be unlinked, and nothing can be left behind.
"""

from __future__ import annotations

import mmap
import os
import sys
import weakref
from typing import Any, Self

from ..device.device import Device
from ..dispatch.keys import dispatch_key
from . import exposure
from .base import TRACKED, new_tensor
from .copies import of_class
from .host_memory import reduce_tensor
from .tensor import Tensor


class SharedMemory(mmap.mmap):
    """Bytes that other processes see, too; a buffer, freed when no array shows it any more.

    Pickled on the way to another process (as an argument of one that is started by "spawn", or in
    a ``multiprocessing.Queue``), it arrives as the same memory.

    Parameters
    ----------
    descriptor : int
        A file descriptor of the memory; the object closes it in the end.
    size : int
        Its bytes, at least one.

    Examples
    --------
    >>> memory = SharedMemory.of_size(3)
    >>> memory[:] = b"abc"
    >>> bytes(memory)
    b'abc'
    """

    #: Whether this system can hand descriptors to other processes.
    SUPPORTED = os.name == "posix"

    descriptor = -1

    def __new__(cls, descriptor: int, size: int) -> Self:
        """Map the memory behind a descriptor."""
        try:
            memory = super().__new__(cls, descriptor, size)
        except BaseException:
            os.close(descriptor)
            raise
        memory.descriptor = descriptor
        _alive.add(memory)
        return memory

    @classmethod
    def of_size(cls, size: int) -> Self:
        """Return new memory.

        Raises
        ------
        OSError
            If there is not enough, or there are too many open files.
        """
        if sys.platform == "linux":
            descriptor = os.memfd_create("tensorplug")
        else:  # a file that has no name any more
            import tempfile

            with tempfile.TemporaryFile() as file:
                descriptor = os.dup(file.fileno())
        try:
            os.ftruncate(descriptor, max(size, 1))
        except BaseException:
            os.close(descriptor)
            raise
        return cls(descriptor, max(size, 1))

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)

    def __reduce__(self) -> tuple[Any, ...]:
        from multiprocessing import reduction

        return _arrived, (reduction.DupFd(self.descriptor), len(self))


def _arrived(duplicate: Any, size: int) -> SharedMemory:
    return SharedMemory(duplicate.detach(), size)


_alive: weakref.WeakSet[SharedMemory] = weakref.WeakSet()


def alive() -> int:
    """Return how many pieces of shared memory this process has mapped."""
    return len(_alive)


# --- tensors ----------------------------------------------------------------------------------


def is_shared(tensor: Any) -> bool:
    """Return whether other processes can see the tensor's memory."""
    return tensor._key.runtime.shared_handle(tensor._array) is not None


def share(tensor: Any) -> None:
    """Move a tensor to shared memory; see ``Tensor.share_memory_``."""
    shared = tensor._key.runtime.share(tensor._array)
    if shared is None:
        raise NotImplementedError(
            f"share_memory_(): memory of device {str(tensor.device)!r} cannot be shared between "
            'processes on this system; move the tensor with .to("cpu"), or send a copy'
        )
    _give(tensor, shared)
    register(type(tensor))


def _give(tensor: Any, shared: Any) -> None:
    """Give a tensor memory that others may write without its version's knowing."""
    exposure.hand_out(tensor._array)
    exposure.take_in(shared)
    tensor._array = shared


def register(cls: type[Any]) -> None:
    """Let ``multiprocessing`` hand tensors of a class over as shared memory rather than as copies."""
    from multiprocessing import reduction

    for known in {cls, Tensor}:  # a view of whatever class is a plain tensor
        reduction.ForkingPickler.register(known, reduce_shared)


def reduce_shared(tensor: Tensor) -> tuple[Any, ...]:
    """Return how a tensor goes to another process: as a handle of its memory.

    The tensor is moved to shared memory first if it is not there yet, except a view, which would
    lose its base; of that one a copy is sent, and of memory that cannot be shared.

    Raises
    ------
    RuntimeError
        If the tensor is the result of recorded ops, whose graph stays behind.
    """
    if not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize a non-leaf tensor which requires_grad: its graph would stay "
            "behind in this process; send tensor.detach()"
        )
    runtime = tensor._key.runtime
    array = runtime.share(tensor._array)
    if array is None:
        return reduce_tensor(tensor)
    if not tensor._is_view():
        _give(tensor, array)
    cls = type(tensor)
    handle = runtime.shared_handle(array)
    state = (tensor.requires_grad, cls, tensor.__getstate__())
    return _rebuild_shared, (handle, tensor.dtype, str(tensor.device), *state)


def _rebuild_shared(
    handle: Any, dtype: Any, device: str, requires_grad: bool, cls: Any, state: Any
) -> Any:
    register(cls)  # it may go on from here
    key = dispatch_key(Device(device), dtype)
    array = key.runtime.from_shared_handle(handle)
    exposure.take_in(array)
    tensor = new_tensor(array, key, tuple(array.shape))
    if cls is not Tensor:
        tensor = of_class(tensor, cls)
    if requires_grad:
        tensor._state = TRACKED
    tensor.__setstate__(state)
    return tensor
