"""From tensors to the arrays that backends move, and back; the checks that come before."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tensorplug.autograd import no_grad
from tensorplug.core import Tensor
from tensorplug.core.ops import cat
from tensorplug.core.plugins.process_groups import Communicator
from tensorplug.core.tensor.base import bump_version

from .reduce_op import ReduceOp, Reduction


def check_tensor(tensor: Any, name: str) -> Tensor:
    """Refuse what is no tensor, as torch does."""
    if not isinstance(tensor, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(tensor)} instead."
        )
    return tensor


def check_tensors(tensors: Any, name: str) -> list[Tensor]:
    """Refuse what is no list of tensors, as torch does."""
    if not isinstance(tensors, (list, tuple)) or not all(isinstance(t, Tensor) for t in tensors):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n"
            f"             but got {type(tensors)} with elements of type {[type(t) for t in tensors]}."
        )
    return list(tensors)


def check_alike(first: Tensor, others: Sequence[Tensor], what: str) -> None:
    """Refuse tensors of different dtypes or devices in one call."""
    for other in others:
        if other.dtype != first.dtype:
            raise ValueError(
                f"Invalid usage of tensors with different dtypes. Found {first.dtype} and {other.dtype}"
            )
        if other.device.type != first.device.type:
            raise ValueError(f"{what}: tensors are on {first.device} and {other.device}")


def array_of(tensor: Tensor) -> Any:
    """Return the array that a contiguous tensor holds."""
    return tensor.detach()._array


def readable(tensor: Tensor) -> Tensor:
    """Return a tensor that is contiguous, itself if it is one, to be read from."""
    return tensor.detach().contiguous()


def apart(source: Tensor, target: Target) -> Tensor:
    """Return a contiguous tensor to be read from while `target` is filled: a copy if they share memory."""
    given = readable(source)
    begin, other = given.data_ptr(), target.buffer.data_ptr()
    shared = begin < other + target.buffer.nbytes and other < begin + given.nbytes
    return given.clone() if shared else given


class Target:
    """A tensor to be written to: what a backend fills, and how it comes back."""

    __slots__ = ("array", "buffer", "tensor")

    def __init__(self, tensor: Tensor, *, read: bool = False) -> None:
        self.tensor = tensor
        if tensor.is_contiguous():
            self.buffer = tensor.detach()
        elif read:
            self.buffer = tensor.detach().contiguous()
        else:
            self.buffer = tensor.new_empty(tuple(tensor.shape)).detach()
        self.array = self.buffer._array

    def finish(self) -> None:
        """Bring what was received to the tensor."""
        if self.tensor.is_contiguous():
            bump_version(self.tensor)
        else:
            with no_grad():
                self.tensor.copy_(self.buffer)


def check_reduction(
    reduction: Reduction, tensor: Tensor, what: str, communicator: Communicator
) -> str:
    """Return what a backend is told to do; refuse what has no meaning for the dtype."""
    op = reduction.op
    exact = not (tensor.is_floating_point() or tensor.is_complex())
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and not exact:
        raise RuntimeError(
            f"Cannot use ReduceOp.{op.name} with non-integral dtype, got {tensor.dtype}"
        )
    if op in (ReduceOp.MIN, ReduceOp.MAX) and tensor.is_complex():
        raise ValueError(f"{what} does not support {op} on complex tensors")
    if op in (ReduceOp.AVG, ReduceOp.PREMUL_SUM) and exact:
        raise ValueError(
            f"{what}: ReduceOp.{op.name} needs a floating-point or complex tensor, got {tensor.dtype}"
        )
    told = "sum" if op in (ReduceOp.AVG, ReduceOp.PREMUL_SUM) else str(op.value)
    if not communicator.supports(told, tensor.dtype):
        raise RuntimeError(
            f"{what}: the backend cannot reduce {tensor.dtype} by ReduceOp.{op.name}"
        )
    return told


def before(reduction: Reduction, buffer: Tensor) -> None:
    """Multiply what goes into a sum of products; `buffer` may be written to."""
    if reduction.op is ReduceOp.PREMUL_SUM:
        with no_grad():
            buffer.mul_(reduction.factor)


def after(reduction: Reduction, buffer: Tensor, size: int) -> None:
    """Divide a sum for the average."""
    if reduction.op is ReduceOp.AVG and size > 1:
        with no_grad():
            buffer.div_(size)


def like(tensor: Tensor) -> tuple[Any, ...]:
    """Return what of a tensor has to be the same in all processes."""
    return tuple(tensor.shape), str(tensor.dtype)


def hand_out(flat: Tensor, tensors: Sequence[Tensor]) -> None:
    """Copy consecutive parts of a flat tensor to tensors."""
    at = 0
    with no_grad():
        for tensor in tensors:
            tensor.copy_(flat[at : at + tensor.numel()].reshape(tuple(tensor.shape)))
            at += tensor.numel()


def together(tensors: Sequence[Tensor]) -> Tensor:
    """Return the elements of all tensors in one that is new."""
    return cat([tensor.detach().reshape(-1) for tensor in tensors])
