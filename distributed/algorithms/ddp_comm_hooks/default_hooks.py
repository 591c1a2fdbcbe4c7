"""Communication hooks that reduce a bucket as it is, or in 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tensorplug.core import DType, Tensor
from tensorplug.core.device.dtypes import bfloat16, float16
from tensorplug.core.futures import Future

from ... import distributed_c10d as c10d
from ...reducer import GradBucket

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
    "noop_hook",
]

Hook = Callable[[Any, GradBucket], Future[Tensor]]


def _group(group: Any) -> Any:
    return c10d._get_default_group() if group is None else group


def mean(group: Any, flat: Tensor) -> Future[Tensor]:
    """Return a future of the mean of a tensor over the processes; it is overwritten."""
    flat.div_(c10d.get_world_size(group))
    work: Any = c10d.all_reduce(flat, group=group, async_op=True)
    return work.get_future().then(lambda _: flat)


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Average a bucket as it is; what happens without a hook.

    Parameters
    ----------
    process_group : ProcessGroup or None
        The state given to ``register_comm_hook``: who takes part, by default all.
    bucket : GradBucket
        The gradients.

    Examples
    --------
    >>> model.register_comm_hook(None, allreduce_hook)  # doctest: +SKIP
    """
    return mean(_group(process_group), bucket.buffer())


def _compressed(dtype: DType, process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    flat = bucket.buffer()
    small = mean(_group(process_group), flat.to(dtype, copy=True))
    return small.then(lambda done: flat.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Average a bucket in float16: half the bytes of float32.

    Examples
    --------
    >>> model.register_comm_hook(None, fp16_compress_hook)  # doctest: +SKIP
    """
    return _compressed(float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future[Tensor]:
    """Average a bucket in bfloat16: half the bytes of float32, and its range.

    Examples
    --------
    >>> model.register_comm_hook(None, bf16_compress_hook)  # doctest: +SKIP
    """
    return _compressed(bfloat16, process_group, bucket)


def _wrapper(dtype: DType, hook: Hook) -> Hook:
    def wrapped(state: Any, bucket: GradBucket) -> Future[Tensor]:
        flat = bucket.flat
        bucket.flat = flat.to(dtype, copy=True)
        try:
            future = hook(state, bucket)
        finally:
            bucket.flat = flat
        return future.then(lambda done: flat.copy_(_tensor(done.value())))

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that gives another one the bucket in float16.

    Examples
    --------
    >>> model.register_comm_hook(None, fp16_compress_wrapper(allreduce_hook))  # doctest: +SKIP
    """
    return _wrapper(float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """Return a hook that gives another one the bucket in bfloat16.

    Examples
    --------
    >>> model.register_comm_hook(None, bf16_compress_wrapper(allreduce_hook))  # doctest: +SKIP
    """
    return _wrapper(bfloat16, hook)


def noop_hook(_: Any, bucket: GradBucket) -> Future[Tensor]:
    """Reduce nothing: what training takes without communication. Processes drift apart.

    Examples
    --------
    >>> model.register_comm_hook(None, noop_hook)  # doctest: +SKIP
    """
    future: Future[Tensor] = Future()
    future.set_result(bucket.buffer())
    return future


def _tensor(result: Any) -> Tensor:
    tensor: Tensor = result[0] if isinstance(result, (list, tuple)) else result
    return tensor
