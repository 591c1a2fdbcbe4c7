"""Batches on their way from a worker to the main process: structure by pipe, elements in shared memory.

A batch is pickled with its arrays left out (PEP 574). Those are copied into one piece of memory whose
descriptor goes through the pipe after the message; the receiver puts tensors over it without a copy.
The memory has no name, so a process that is killed at any point leaves nothing behind.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing import reduction
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from tensorplug.core import Tensor
from tensorplug.core.tensor.host_memory import reduce_elements
from tensorplug.core.tensor.layout import strided
from tensorplug.core.tensor.shared_memory import SharedMemory, alive

from .signals import signals_put_off

#: Batches up to this size go through the pipe: that is faster than mapping memory.
INLINE_BYTES = 1 << 16
#: Memory takes two open files each, of which a process may have few. So a program that keeps more
#: batches than this gets copies in ordinary memory.
MOST_MAPPED = 64

_ALIGNMENT = 64


class Message(NamedTuple):
    """A packed batch, and what goes along with it."""

    head: Any
    structure: bytes
    sizes: list[int]
    inline: bytes | None  # the elements, unless they are in memory
    memory: SharedMemory | None


class _Pickler(pickle.Pickler):
    def reducer_override(self, obj: Any) -> Any:
        """Take of a tensor its own elements, not all of the memory that it may show a part of."""
        if not isinstance(obj, Tensor):
            return NotImplemented
        if not obj.is_leaf:
            raise RuntimeError(
                "a DataLoader worker cannot hand over a tensor that requires grad and is no leaf; "
                "detach() it in the dataset or in collate_fn"
            )
        # A tensor of another layout is pickled as its parts, which come here in turn.
        return reduce_elements(obj) if obj.layout is strided else NotImplemented


def pack(head: Any, batch: Any) -> Message:
    """Return a batch ready to be sent, its elements copied.

    Parameters
    ----------
    head : object
        Goes along as it is.
    batch : object
        Anything that can be pickled.
    """
    buffers: list[pickle.PickleBuffer] = []
    file = io.BytesIO()
    _Pickler(file, protocol=5, buffer_callback=buffers.append).dump(batch)
    parts = [buffer.raw() for buffer in buffers]
    sizes = [part.nbytes for part in parts]
    indices, total = _places(sizes)
    memory = None
    if total > INLINE_BYTES and SharedMemory.SUPPORTED:
        with suppress(OSError):  # too many open files, for example: the pipe is always there
            memory = SharedMemory.of_size(total)
    target = memoryview(bytearray(total) if memory is None else memory)
    for index, part in zip(indices, parts, strict=True):
        target[index : index + part.nbytes] = part
    inline = target.tobytes() if memory is None else None
    return Message(head, file.getvalue(), sizes, inline, memory)


def send(connection: Connection, message: Message) -> None:
    """Send what :func:`pack` returned."""
    memory = message.memory
    connection.send_bytes(pickle.dumps(tuple(message[:4]), protocol=5))
    if memory is not None:
        reduction.send_handle(connection, memory.descriptor, None)


def receive(connection: Connection) -> tuple[Any, Any]:
    """Return head and batch of the next message.

    Raises
    ------
    EOFError, OSError
        If the sender has ended, or ends amid the message.
    """
    head, structure, sizes, inline = pickle.loads(connection.recv_bytes())
    indices, total = _places(sizes)
    memory: Any
    if inline is not None:
        memory = bytearray(inline)
    else:
        connection.poll(None)  # so that an interrupt ends the waiting
        with signals_put_off():  # a descriptor that nobody holds yet could not be closed
            memory = SharedMemory(reduction.recv_handle(connection), total)
        if alive() > MOST_MAPPED:
            memory = bytearray(memory)
    view = memoryview(memory)
    parts = [view[index : index + size] for index, size in zip(indices, sizes, strict=True)]
    return head, pickle.loads(structure, buffers=parts)


def _places(sizes: Sequence[int]) -> tuple[list[int], int]:
    """Return where buffers of these sizes begin, and how many bytes they take together."""
    indices, end = [], 0
    for size in sizes:
        indices.append(end)
        end += -(-size // _ALIGNMENT) * _ALIGNMENT
    return indices, end
