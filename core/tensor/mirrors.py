"""Memory that shows the conjugate of other memory, as a view does.

No array of a plugin shows conjugates, so ``conj`` computes them into memory of their own. What is written to
either memory is then carried over to the other, so that the two act as torch's views do. Only tensors that
have such a counterpart pay for that: their :class:`~.base.Storage` knows it.
"""

from __future__ import annotations

import weakref
from typing import Any

from ..dispatch import op_registry
from ..dispatch.layers import gradient_off
from ..dispatch.state import dispatch_state
from .base import TRACKED, Storage, TensorBase, new_tensor, storage_of

_COPY = op_registry.handle("copy")
_CONJUGATE = op_registry.handle("conj_physical")
_VIEW = op_registry.handle("view")


class Mirror:
    """What a memory shows the conjugate of, and what shows its conjugate.

    Attributes
    ----------
    shows : (Tensor, array), optional
        The tensor that this memory shows the conjugate of, and its array at that time.
    copy : (weak reference to a tensor, array)
        The tensor that ``conj`` returned; its array, which may outlast it.
    shown : list of weak references to storages
        The memories that show the conjugate of this one.
    busy : bool
        Whether a write is being carried over from here.
    tracked : bool
        Whether gradients go through what is written; not of a tensor's `data`.
    """

    __slots__ = ("busy", "copy", "shown", "shows", "tracked")

    def __init__(self) -> None:
        self.shows: tuple[Any, Any] | None = None
        self.copy: tuple[Any, Any] | None = None
        self.shown: list[weakref.ref[Storage]] = []
        self.busy = False
        self.tracked = True

    def untracked(self) -> Mirror:
        """Return the mirror of the same memory without gradients."""
        other = Mirror()
        other.shows, other.copy, other.shown = self.shows, self.copy, self.shown
        other.tracked = False
        return other

    def source(self) -> Any:
        """Return the tensor that this memory shows the conjugate of, laid out as it was."""
        tensor, array = self.shows  # type: ignore[misc]
        if tensor._array is not array and tensor._view is not None:
            tensor = tensor._view.base  # turned in place, as by t_()
        if tensor._array is not array:
            raise RuntimeError(
                "conj(): what it returned shows a tensor whose memory or shape was changed since; "
                "call resolve_conj() first to write to the one or the other"
            )
        return tensor

    def target(self, storage: Storage) -> Any:
        """Return the tensor that ``conj`` returned, or one of its memory."""
        known, array = self.copy  # type: ignore[misc]
        tensor = known()
        if tensor is None or tensor._array is not array:
            source = self.source()
            tensor = new_tensor(array, source._key, source._shape)
            tensor._storage = storage
        return tensor

    def live(self) -> bool:
        """Return whether there is memory to carry a write over to."""
        return self.shows is not None or any([known() is not None for known in self.shown])

    def others(self) -> list[Storage]:
        """Return the memories that show the conjugate of this one, or that this one shows."""
        above = [] if self.shows is None else [self.shows[0]._storage]
        return above + [storage for known in self.shown if (storage := known()) is not None]

    def reached(self) -> list[Storage]:
        """Return all memories that a write from here is carried over to, by others as well."""
        found = self.others()
        for storage in found:
            mirror = storage.mirror
            new = [] if mirror is None else mirror.others()
            found += [other for other in new if other not in found]
        return found

    def begin(self) -> None:
        """Refuse a write that could not be carried over; note that one begins."""
        if self.shows is not None and self.tracked:
            source = self.source()
            dispatch_state.gradient.before_inplace(_COPY, source, (source, source))
        self.busy = True

    def carry_over(self, storage: Storage) -> None:
        """Carry a write to the memories that show the conjugate of this one, or that this one shows."""
        if self.tracked:
            self._carry_over(storage)
            return
        # Writes to a tensor's `data` are not counted, wherever they show.
        versions = [(reached, reached.version) for reached in self.reached()]
        with gradient_off():
            self._carry_over(storage)
        for reached, version in versions:
            reached.version = version

    def _carry_over(self, storage: Storage) -> None:
        self.busy = True
        try:
            if self.shows is not None:
                source = self.source()
                above = source._storage.mirror
                if above is None or not above.busy:
                    _write(source, self.target(storage))
            for known in self.shown:
                below = known()
                if below is not None and not below.mirror.busy:
                    _write(below.mirror.target(below), below.mirror.source())
        finally:
            self.busy = False
        if not self.live():
            storage.mirror = None


def conjugated(input: Any) -> Any:
    """Return the conjugate of a complex tensor, which shares its elements with it as a view does."""
    known = input._storage.mirror if isinstance(input, TensorBase) and input._storage else None
    if known is not None and known.shows is not None:
        view = input._view
        shown: Any = input if view is None else view.base
        # One that was made to require grad begins a graph, which what it shows has no part in.
        if shown is known.copy[0]() and not (shown.requires_grad and shown.is_leaf):
            source = known.source()  # twice is not at all
            return _VIEW.call(source, source._shape) if view is None else view.replay(source)
    copy = _CONJUGATE.call(input)
    if getattr(copy, "_batched", True) or copy._key.is_meta or copy._key.intercepts:
        return copy
    storage = storage_of(input)
    own = storage_of(copy)
    if storage.mirror is None:
        storage.mirror = Mirror()
    mirror = storage.mirror
    mirror.shown = [*[shown for shown in mirror.shown if shown() is not None], weakref.ref(own)]
    own.mirror = Mirror()
    own.mirror.shows = input, input._array
    own.mirror.copy = weakref.ref(copy), copy._array
    return copy


def shows_conjugate(tensor: Any) -> bool:
    """Return whether a complex tensor shows what is in other memory, conjugated."""
    storage = tensor._storage
    mirror = None if storage is None else storage.mirror
    if mirror is None or mirror.shows is None or not tensor._key.dtype.is_complex:
        return False
    return not shows_conjugate(mirror.shows[0])


def _write(target: Any, source: Any) -> None:
    if target._state == TRACKED and target._node is None and target._view is None:
        with gradient_off():  # a leaf of its own
            target.copy_(_CONJUGATE.call(source))
    else:
        target.copy_(_CONJUGATE.call(source))
