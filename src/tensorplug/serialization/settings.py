"""How files are read and written, where a call does not say it."""

from __future__ import annotations

import enum
import mmap
import threading
from functools import partial

from tensorplug.core.contexts import OwnContext, Steps

_PRIVATE = getattr(mmap, "MAP_PRIVATE", None)  # Windows has neither
_SHARED = getattr(mmap, "MAP_SHARED", None)


class LoadEndianness(enum.Enum):
    """In what order the bytes of a number lie: this machine's, the lowest first, or the highest first."""

    NATIVE = 1
    LITTLE = 2
    BIG = 3


class _Settings:
    endianness: LoadEndianness | None = None
    mapping: int | None = _PRIVATE
    checksums = True


class _OfThread(threading.local):
    skips_data = False


_settings = _Settings()
_of_thread = _OfThread()


def get_default_load_endianness() -> LoadEndianness | None:
    """Return the order that is assumed of a file that names none; None stands for the lowest byte first."""
    return _settings.endianness


def set_default_load_endianness(endianness: LoadEndianness | None) -> None:
    """Assume an order of bytes of files that name none, as torch before 2.1 wrote them.

    Parameters
    ----------
    endianness : LoadEndianness, optional
        The order; None stands for the lowest byte first.

    Raises
    ------
    TypeError
        If it is anything else.
    """
    if endianness is not None and not isinstance(endianness, LoadEndianness):
        raise TypeError(
            "set_default_load_endianness(): expected a LoadEndianness or None, got "
            f"{type(endianness).__name__}"
        )
    _settings.endianness = endianness


def get_crc32_options() -> bool:
    """Return whether the checksums of what is read are compared."""
    return _settings.checksums


def set_crc32_options(compute_crc32: bool) -> None:
    """Set whether the checksums of what is read are compared.

    Those that are written are always right, so that other programs can read the file. Records of files
    that torch wrote without them are read in any case.

    Parameters
    ----------
    compute_crc32 : bool
        False for files whose memories were written to after :func:`save`.
    """
    _settings.checksums = bool(compute_crc32)


def get_default_mmap_options() -> int | None:
    """Return ``mmap.MAP_PRIVATE`` or ``mmap.MAP_SHARED``, which ``load(mmap=True)`` maps with."""
    return _settings.mapping


class set_default_mmap_options:
    """Have ``load(mmap=True)`` map files in one of two ways, from now on or in a ``with`` block.

    Parameters
    ----------
    flags : int
        ``mmap.MAP_PRIVATE``, where what is written to a tensor stays in the process, or
        ``mmap.MAP_SHARED``, where it goes to the file.

    Raises
    ------
    ValueError
        If it is neither.
    RuntimeError
        On Windows, which has no such flags.
    """

    def __init__(self, flags: int) -> None:
        if _SHARED is None:
            raise RuntimeError(
                "set_default_mmap_options(): Changing the default mmap options is currently not supported "
                "on this system"
            )
        if flags not in (_PRIVATE, _SHARED):
            raise ValueError(
                "set_default_mmap_options(): expected mmap.MAP_PRIVATE or mmap.MAP_SHARED, but got "
                f"{flags}"
            )
        self._before = _settings.mapping
        _settings.mapping = flags

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        _settings.mapping = self._before


def maps_shared() -> bool:
    """Return whether writes to mapped tensors go to the file."""
    return _SHARED is not None and _settings.mapping == _SHARED


class skip_data(OwnContext):
    """Leave out the bytes of memories in a ``with`` block: of files only the rest is written or read.

    :func:`save` writes zeros in their place, to be filled in later; :func:`load` returns tensors of zeros
    without reading.

    Parameters
    ----------
    materialize_fake_tensors : bool
        Accepted as in torch.

    Examples
    --------
    >>> import io
    >>> import tensorplug as tp
    >>> file = io.BytesIO()
    >>> with tp.serialization.skip_data():
    ...     tp.save(tp.ones(2), file)
    >>> _ = file.seek(0)
    >>> tp.load(file)
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def _steps(self) -> tuple[Steps, Steps]:
        before = _of_thread.skips_data
        return (
            (partial(setattr, _of_thread, "skips_data", True),),
            (partial(setattr, _of_thread, "skips_data", before),),
        )


def skips_data() -> bool:
    """Return whether the calling thread is in a block of :class:`skip_data`."""
    return _of_thread.skips_data
