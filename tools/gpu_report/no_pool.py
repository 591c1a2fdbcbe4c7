"""A plugin of pytest: each array is an allocation of its own, so that a look beyond its end is found."""

import cupy


def _allocate(size: int) -> cupy.cuda.MemoryPointer:
    # Atomic operations on types of one or two bytes change the word of four around them.
    return cupy.cuda.MemoryPointer(cupy.cuda.Memory(-(-size // 4) * 4), 0)


cupy.cuda.set_allocator(_allocate)  # before the backend asks which one was chosen
