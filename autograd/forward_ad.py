"""Forward mode for users: tensors with a tangent, made by hand (``torch.autograd.forward_ad``).

``tp.func.jvp`` is the same without bookkeeping, and nests.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from tensorplug.core.contexts import OwnContext, Steps, declare, leave as leave_context, thread
from tensorplug.core.dispatch.counts import count_layers
from tensorplug.core.tensor.layout import strided
from tensorplug.core.tensor.tensor import Tensor

from .forward.forward_mode import ForwardLevel, set_tangent, tangent_at
from .transforms import levels
from .transforms.levels import ActiveLevels, state
from .transforms.points import behind, raised, rebuilt

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

# Of each thread: the level that a number stands for; there is at most one of them at a time, as in torch.
declare(dual_levels=())


class UnpackedDualTensor(NamedTuple):
    """A tensor and its tangent, None if it has none."""

    primal: Tensor
    tangent: Tensor | None


def __getattr__(name: str) -> int:
    if name == "_current_level":  # of this thread; torch has it as a global
        return len(thread.dual_levels) - 1
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Begin forward mode; return the number of the level.

    Raises
    ------
    RuntimeError
        If forward mode is on already.
    """
    level = _new_level()
    levels.enter(level)
    thread.dual_levels = (level,)
    return 0


def _new_level() -> ForwardLevel:
    if thread.dual_levels:
        raise RuntimeError("Nested forward mode AD is not supported at the moment")
    return ForwardLevel()


def exit_dual_level(*, level: int | None = None) -> None:
    """End forward mode: all tensors lose their tangents.

    Raises
    ------
    RuntimeError
        If it is not on, or another level is named than the one that was entered last.
    """
    number = len(thread.dual_levels) - 1 if level is None else level
    if number < 0:
        raise RuntimeError("Dual level must be a positive number.")
    if number != len(thread.dual_levels) - 1:
        raise RuntimeError(
            f"Trying to exit a dual level {number} that was not the last one that was entered: current "
            f"level is {len(thread.dual_levels) - 1}."
        )
    (ended,) = thread.dual_levels
    thread.dual_levels = ()
    levels.leave(ended)


def _level(level: int | None, action: str) -> ForwardLevel:
    number = len(thread.dual_levels) - 1 if level is None else level
    if number < 0:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to "
            "enter_dual_level() first."
        )
    if number >= len(thread.dual_levels):
        raise RuntimeError(f"Invalid level given to {action}")
    return thread.dual_levels[number]


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Any:
    """Return a view of a tensor that carries a tangent.

    Parameters
    ----------
    tensor, tangent : Tensor
        Of the same shape; floating point or complex.
    level : int, optional
        The level; by default the one entered last.

    Raises
    ------
    RuntimeError
        Outside of a level, for other shapes, or if the tensor has a tangent already.
    ValueError
        If a dtype has no derivatives.

    Examples
    --------
    >>> import tensorplug as tp
    >>> import tensorplug.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(tp.tensor(2.0), tp.tensor(1.0))
    ...     fwAD.unpack_dual(x * x)
    UnpackedDualTensor(primal=tensor(4.), tangent=tensor(4.))
    """
    chosen = _level(level, "_make_dual")
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(
                f"Expected {name} to be floating point or complex, but got: {value.dtype}"
            )
    if tangent._shape != tensor._shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, "
            f"this is not supported. Tensor is of size {list(tensor._shape)} while the given forward "
            f"gradient is of size {list(tangent._shape)}."
        )
    batches = state.batches if tensor._batched or tangent._batched else ()
    # Tangents are of plain tensors.
    low, direction = behind(tensor, batches), behind(tangent, batches)
    if tangent_at(low, chosen) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
            "0 is not supported."
        )
    if tangent_at(direction, chosen) is not None:
        raise RuntimeError(
            "Setting a forward gradient that itself has a forward gradient at the same level 0 is not "
            "supported; unpack_dual() it first."
        )
    with ActiveLevels((), state.tangents):
        dual: Any = low.view_as(low)
    set_tangent(dual, chosen, _laid_out(direction, low))
    return raised(dual, batches)


def _laid_out(tangent: Any, tensor: Any) -> Any:
    """Return a tangent that lies in its memory as its tensor does: a copy if need be.

    What shows memory, as ``as_strided`` does, then shows the same elements of both.
    """
    if tensor._key.intercepts or tangent._key.intercepts or tensor.layout is not strided:
        return tangent
    steps = tensor.stride()
    size = _elements(tensor)
    if 0 in steps or (tangent.stride() == steps and _elements(tangent) == size):
        return tangent
    memory = tangent.new_zeros((size,))
    shown = memory.as_strided(tensor._shape, steps, tensor.storage_offset())
    return shown.copy_(tangent)


def _elements(tensor: Any) -> int:
    """Return how many elements a tensor's memory has."""
    size: int = tensor.untyped_storage().nbytes() // tensor.element_size()
    return size


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return a tensor without its tangent, and the tangent.

    Examples
    --------
    >>> import tensorplug as tp
    >>> tp.autograd.forward_ad.unpack_dual(tp.tensor(1.0))
    UnpackedDualTensor(primal=tensor(1.), tangent=None)
    """
    number = len(thread.dual_levels) - 1 if level is None else level
    if number < 0 or number >= len(thread.dual_levels):
        return UnpackedDualTensor(tensor, None)
    chosen = thread.dual_levels[number]
    found: list[Any] = []

    def parted(dual: Any) -> Any:
        found.append(tangent_at(dual, chosen))
        primal = dual.view_as(dual)
        set_tangent(primal, chosen, None)  # else it would find the tangent of its base
        return primal

    with ActiveLevels((), state.tangents[: state.tangents.index(chosen)]):
        primal = rebuilt(tensor, parted)
        tangent = None if found[0] is None else rebuilt(tensor, lambda _: found[0])
    return UnpackedDualTensor(primal, tangent)


class dual_level(OwnContext):
    """Forward mode within a ``with`` block.

    Examples
    --------
    >>> import tensorplug as tp
    >>> import tensorplug.autograd.forward_ad as fwAD
    >>> with fwAD.dual_level():
    ...     x = fwAD.make_dual(tp.zeros(2), tp.ones(2))
    ...     fwAD.unpack_dual(x.exp()).tangent
    tensor([1., 1.])
    """

    def _steps(self) -> tuple[Steps, Steps]:
        level = _new_level()
        changes = count_layers() | levels.meeting(state.batches, (*state.tangents, level))
        changes["dual_levels"] = (level,)
        before = {name: getattr(thread, name) for name in changes}
        table = thread.__dict__
        return (partial(table.update, changes),), (partial(table.update, before), level.end)

    def _target(self) -> int:
        return 0

    if TYPE_CHECKING:

        def __exit__(self, *exc: object) -> None: ...

    else:  # the counts of a thread go by its contexts
        _leaver = thread
        __exit__ = staticmethod(leave_context)
