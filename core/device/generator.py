"""Generators of random numbers: a seed and a counter.

Random bits come from Philox 4x32-10 (Salmon et al., *Parallel Random Numbers: As Easy as 1, 2, 3*,
2011), a function of (key, counter). The key is the seed; the counter goes on by as many blocks of
four words as an op takes. So a seed gives the same integers and uniform numbers on every backend,
however it computes.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Self

from ..contexts import Block, Steps, declare, thread
from ..dispatch.keys import canonical_device
from ..dispatch.layers import note_hidden, note_opaque
from ..dispatch.state import dispatch_state
from ..errors import type_name
from ..locks import renewed
from ..tensor.base import TensorBase
from ..tensor.creation import tensor
from .device import CPU, Device
from .dtypes import uint8

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "generator_of",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]

# What a layer asks that serves a draw for many: the generator that an op took its words from.
declare(drawn_from=None)

# What torch's generators start from, before anybody seeds them.
_FIRST_SEED = 67280421310721
_STATE_BYTES = 16
_WORDS_PER_BLOCK = 4
_COMPILED = not __file__.endswith(".py")


def _checked_seed(value: Any, name: str) -> int:
    """Return a seed as an unsigned number of 64 bits; a negative one counts from the top."""
    try:
        whole = value.__index__()
    except AttributeError:
        whole = int(value)
    if not -(1 << 63) <= whole < 1 << 64:
        raise ValueError(f"{name}(): Overflow: a seed has 64 bits, got {value}")
    return whole % (1 << 64)


class Generator:
    """A stream of random numbers that ops take as ``generator=``.

    Parameters
    ----------
    device : Device or str
        Where the ops it is given to make their results.

    Examples
    --------
    >>> import tensorplug as tp
    >>> g = tp.Generator().manual_seed(1)
    >>> a = tp.rand(3, generator=g)
    >>> tp.equal(a, tp.rand(3, generator=g.manual_seed(1)))
    True
    """

    def __init__(self, device: Device | str = "cpu") -> None:
        self._device = Device(device)
        self._lock = renewed(threading.Lock())
        # The seed, and the number of the next block of words: changed together, in one instruction.
        self._position = _FIRST_SEED, 0

    @property
    def device(self) -> Device:
        """Where the ops it is given to make their results."""
        return self._device

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of `seed`; return the generator.

        Raises
        ------
        RuntimeError
            If it is no int.
        ValueError
            If it does not fit into 64 bits.
        """
        if (
            not hasattr(seed, "__index__")
            or hasattr(seed, "requires_grad")
            or isinstance(seed, bool)
        ):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        checked = _checked_seed(seed, "manual_seed")
        note_opaque("manual_seed()")
        with self._lock:
            self._position = checked, 0
        return self

    def seed(self) -> int:
        """Start the stream of a seed that the operating system supplies; return the seed."""
        chosen = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(chosen)
        return chosen

    def initial_seed(self) -> int:
        """Return the seed of the stream."""
        note_opaque("initial_seed()")
        return self._position[0]

    def take(self, words: int) -> tuple[int, int]:
        """Claim as many 32-bit words; return the seed and the number of their first block.

        What ops call; safe among threads.
        """
        if dispatch_state.layers_active and thread.stack:
            note_hidden("random numbers")
            thread.drawn_from = self
        blocks = (words + _WORDS_PER_BLOCK - 1) // _WORDS_PER_BLOCK
        if _COMPILED:  # no other thread runs between a comparison and an assignment
            return self._claim(blocks)
        with self._lock:
            return self._claim(blocks)

    def _claim(self, blocks: int) -> tuple[int, int]:
        while True:
            position = self._position
            # Making a tuple may collect garbage, whose finalizers may draw.
            further = position[0], position[1] + blocks
            if self._position is position:
                self._position = further
                return position

    def get_state(self) -> Any:
        """Return the state as a tensor of bytes: seed and offset, 64 bits each."""
        note_opaque("get_state()")
        with self._lock:
            seed, offset = self._position
        state = (seed | offset % (1 << 64) << 64).to_bytes(_STATE_BYTES, "little")
        return tensor(list(state), dtype=uint8, device=CPU)

    def set_state(self, new_state: Any) -> Self:
        """Continue from a state that :meth:`get_state` returned; return the generator.

        Raises
        ------
        TypeError, RuntimeError
            If it is none.
        """
        note_opaque("set_state()")
        if not isinstance(new_state, TensorBase) or new_state._key.dtype is not uint8:
            raise TypeError(
                "set_state(): expected a tensor of dtype uint8, as get_state() returns it, got "
                f"{getattr(new_state, 'dtype', type(new_state).__name__)}"
            )
        values = new_state.tolist()  # type: ignore[attr-defined]
        if len(values) != _STATE_BYTES:
            raise RuntimeError(
                f"set_state(): a state has {_STATE_BYTES} bytes, got {len(values)}; it may come "
                "from "
                "another library"
            )
        number = int.from_bytes(bytes(values), "little")
        with self._lock:
            self._position = number % (1 << 64), number >> 64
        return self

    def clone_state(self) -> Generator:
        """Return a generator that goes on from the same state by itself."""
        note_opaque("clone_state()")
        copy = Generator(self._device)
        with self._lock:
            copy._position = self._position
        return copy

    def __repr__(self) -> str:
        return f"<tensorplug.Generator device={str(self._device)!r} seed={self._position[0]}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (str(self._device), *self._position)


def _restore(device: str, seed: int, offset: int) -> Generator:
    generator = Generator(device)
    generator._position = seed, offset
    return generator


# --- the generators that ops use where none is given ------------------------------------------

default_generator = Generator()
default_generator.seed()
_defaults: dict[Device, Generator] = {CPU: default_generator}
_lock = renewed(threading.Lock())
# What manual_seed said last: devices that come later start there, too.
_base_seed: int | None = None


def generator_of(device: Device | str) -> Generator:
    """Return the default generator of a device."""
    known = _defaults.get(device)  # type: ignore[arg-type]
    if known is not None:
        return known
    exact = canonical_device(Device(device))
    with _lock:
        known = _defaults.get(exact)
        if known is None:
            known = _defaults[exact] = Generator(exact)
            if _base_seed is None:
                known.seed()
            else:
                known.manual_seed(_base_seed)
    return known


def chosen_generator(generator: Generator | None, device: Device, name: str) -> Generator:
    """Return the generator that an op on a device draws from."""
    if generator is None:
        return generator_of(device)
    if not isinstance(generator, Generator):
        raise TypeError(
            f"{name}(): generator must be a tensorplug.Generator, not {type_name(generator)}"
        )
    if generator.device.type != device.type and device.type != "meta":
        raise RuntimeError(
            f"{name}(): Expected a '{device.type}' device type for generator but found "
            f"'{generator.device.type}'"
        )
    return generator


def manual_seed(seed: int) -> Generator:
    """Start the streams of all default generators, of every device, at `seed`.

    Returns
    -------
    Generator
        The default generator of "cpu".

    Raises
    ------
    ValueError
        If the seed does not fit into 64 bits.

    Examples
    --------
    >>> import tensorplug as tp
    >>> _ = tp.manual_seed(0)
    >>> a = tp.rand(2)
    >>> _ = tp.manual_seed(0)
    >>> tp.equal(a, tp.rand(2))
    True
    """
    global _base_seed
    checked = _checked_seed(seed, "manual_seed")
    with _lock:
        _base_seed = checked
        generators = list(_defaults.values())
    for generator in generators:
        generator.manual_seed(checked)
    return default_generator


def seed() -> int:
    """Start all default generators at a seed that the operating system supplies; return it."""
    chosen = int.from_bytes(os.urandom(8), "little")
    manual_seed(chosen)
    return chosen


def initial_seed() -> int:
    """Return the seed of the default generator of "cpu"."""
    return default_generator.initial_seed()


def get_rng_state() -> Any:
    """Return the state of the default generator of "cpu" as a tensor of bytes."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Make the default generator of "cpu" go on from a state of :func:`get_rng_state`."""
    default_generator.set_state(new_state)


def fork_rng(
    devices: Iterable[Device | str] | None = None, enabled: bool = True, **options: Any
) -> Block:
    """Put the default generators back, after a ``with`` block, to where they stood before it.

    Parameters
    ----------
    devices : iterable of Device or str, optional
        Whose generators, beside that of "cpu"; by default of all devices used so far.
    enabled : bool
        Whether to do anything.

    Examples
    --------
    >>> import tensorplug as tp
    >>> before = tp.get_rng_state()
    >>> with tp.random.fork_rng():
    ...     _ = tp.rand(3)
    >>> tp.equal(before, tp.get_rng_state())
    True
    """

    def steps() -> tuple[Steps, Steps]:
        if not enabled:
            return (), ()
        note_opaque("fork_rng()")
        if devices is None:
            generators = list(_defaults.values())
        else:
            generators = [default_generator, *[generator_of(device) for device in devices]]
        return (), [going_on(generator) for generator in generators]

    return Block(steps)


def going_on(generator: Generator) -> Callable[[], None]:
    """Return what makes a generator go on from where it is now, in one instruction."""
    with generator._lock:
        return partial(setattr, generator, "_position", generator._position)
