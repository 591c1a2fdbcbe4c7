"""What a device does beside running ops: copies, views, exchange, random numbers, time.

Each function checks one thing on one device and returns how many single comparisons it made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tensorplug.core import plugins
from tensorplug.core.device.device import CPU, Device
from tensorplug.core.device.dtypes import ALL_DTYPES, DType, can_cast, float32, int64
from tensorplug.core.device.generator import Generator
from tensorplug.core.device.runtime import CAPABILITIES, DeviceRuntime
from tensorplug.core.dispatch.kernel_registry import kernels_for
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.core.dispatch.state import dispatch_state
from tensorplug.core.tensor.creation import from_numpy, tensor
from tensorplug.core.tensor.host import from_dlpack
from tensorplug.core.tensor.tensor import Tensor

from . import making
from .cases import LAYOUTS, with_layout

SHAPES = ((), (5,), (2, 3), (0, 3), (4, 1, 5))

#: Which dtypes a capability stands for.
DTYPE_CAPABILITIES = {
    "complex64": ("complex",),
    "complex128": ("complex", "float64"),
    "float64": ("float64",),
    "float16": ("float16",),
    "bfloat16": ("bfloat16",),
}


def runtime_of(device: str) -> DeviceRuntime:
    """Return the runtime of a device such as ``"cpu"`` or ``"cuda:1"``."""
    return dispatch_state.find_runtime(Device(device).type)


def missing(device: str, dtype: DType) -> str:
    """Return why a device does not take a dtype, or an empty string."""
    runtime = runtime_of(device)
    absent = [
        name for name in DTYPE_CAPABILITIES.get(dtype.name, ()) if name not in runtime.capabilities
    ]
    if absent:
        return f"the device declares no {' and '.join(absent)}"
    if runtime.dtypes is not None and dtype not in runtime.dtypes:
        return f"the device has no dtype {dtype.name}"
    return ""


def has_kernel(op: str, device: str) -> bool:
    """Return whether a kernel runs an op on a device, rather than its decomposition."""
    found = get_op(op)
    return not found.view and bool(kernels_for(op, Device(device).type))


def check_kernels_in_use(device: str) -> int:
    """Check that each kernel for the device has an op; its name may be misspelt, its signature wrong."""
    type_ = runtime_of(device).type
    brought = {r.name for r in plugins.registered() if any(k.device == type_ for k in r.kernels)}
    refused = [str(e.error) for e in plugins.quarantined_kernels() if e.plugin in brought]
    assert not refused, "\n".join(refused)
    waiting = plugins.waiting_kernels()
    in_vain = [str(entry) for entry in waiting if entry.device == type_ and entry.misspelt]
    assert not in_vain, "\n".join(in_vain)
    return 1


def _same(got: Tensor, wanted: Any, what: str) -> int:
    """Compare with a NumPy array, to the bit but for which nan it is."""
    array = got.detach().to(CPU).numpy(force=True)
    assert array.shape == wanted.shape, f"{what}: shape {array.shape}, expected {wanted.shape}"
    assert array.dtype == wanted.dtype, f"{what}: {array.dtype}, expected {wanted.dtype}"
    one, other = array, wanted
    if array.dtype.kind not in "biu":
        wide = np.complex128 if array.dtype.kind == "c" else np.float64
        one, other = array.astype(wide), wanted.astype(wide)
    differs = (one != other) & ((one == one) | (other == other))
    if differs.any():
        place = tuple(map(int, np.argwhere(differs)[0]))
        raise AssertionError(
            f"{what}: {differs.sum()} of {differs.size} elements differ, first at {place}: got "
            f"{array[place]!r}, expected {wanted[place]!r}"
        )
    return 1


def _host(shape: tuple[int, ...], dtype: DType) -> Tensor:
    """Return a tensor on the CPU, with the dtype's extremes where there is room."""
    made = making.make_tensor(*shape, dtype=dtype)
    if made.numel() < 4 or dtype.name == "bool":
        return made
    array = made.numpy(force=True).copy()
    flat = array.reshape(-1)
    if dtype.is_floating_point or dtype.is_complex:
        flat[:4] = [math.inf, -math.inf, math.nan, -0.0]
    else:
        limits = np.iinfo(array.dtype)
        flat[:2] = [limits.min, limits.max]
    return from_numpy(array) if dtype.name != "bfloat16" else tensor(array.tolist(), dtype=dtype)


def check_copies(device: str, dtype: DType) -> int:
    """Copy to the device, on it, and back, of every layout; contents stay, memory is not shared."""
    making.seed(f"copies {dtype.name}")
    count = 0
    for shape in SHAPES:
        source = _host(shape, dtype)
        wanted = source.numpy(force=True).copy()
        for layout in LAYOUTS:
            what = f"{dtype.name}{list(shape)} {layout}"
            there = with_layout(source, layout).to(device, copy=True)
            assert there.device.type == Device(device).type
            count += _same(there, wanted, f"{what} to {device}")
            laid = with_layout(there, layout)
            count += _same(laid, wanted, f"{what} from {device}")
            count += _same(laid.clone(), wanted, f"clone of {what}")
            target = with_layout(there.clone(), layout)
            target.copy_(with_layout(source, layout))
            count += _same(target, wanted, f"copy_ from the CPU to {what}")
            back = with_layout(source.clone(), layout)
            back.copy_(laid)
            count += _same(back, wanted, f"copy_ to the CPU from {what}")
    return count + _copies_are_apart(device, dtype)


def _copies_are_apart(device: str, dtype: DType) -> int:
    host = making.make_tensor(4, dtype=dtype)
    wanted = host.numpy(force=True).copy()
    there = host.to(device, copy=True)
    back = there.to(CPU, copy=True)
    twin = there.clone()
    there.copy_(_other(there))
    count = _same(host, wanted, "the source of a copy that was written to")
    count += _same(twin, wanted, "a clone whose original was written to")
    return count + _same(back, wanted, "a copy on the CPU whose original was written to")


def _other(value: Tensor) -> Tensor:
    """Return a tensor that differs from this one everywhere."""
    return value.logical_not().to(value.dtype)


def check_conversions(device: str, dtype: DType) -> int:
    """Convert to every dtype that the device has, as the CPU does."""
    making.seed(f"conversions {dtype.name}")
    host = making.make_tensor(2, 3, dtype=dtype, low=0, high=9)
    there = host.to(device)
    count = 0
    for other in ALL_DTYPES:
        if missing(device, other) or (dtype.is_complex and not other.is_complex):
            continue
        wanted = host.to(other).numpy(force=True)
        count += _same(there.to(other), wanted, f"{dtype.name} to {other.name}")
        count += _same(host.to(device, other), wanted, f"{dtype.name} on cpu to {other.name}")
        if can_cast(dtype, other):
            target = there.to(other) * 0 if other.name != "bool" else ~there.to(other)
            target.copy_(there)
            count += _same(target, wanted, f"copy_ of {dtype.name} to {other.name}")
    return count


def check_empty(device: str, dtype: DType) -> int:
    """Make, copy, reshape, join and reduce tensors without elements."""
    count = 0
    for shape in ((0,), (0, 3), (2, 0, 4)):
        made = making.make_tensor(*shape, dtype=dtype, device=device)
        wanted = np.empty(shape, made.to(CPU).numpy(force=True).dtype)
        for what, got in (
            ("empty", made),
            ("clone", made.clone()),
            ("contiguous", made.transpose(0, -1).contiguous().transpose(0, -1)),
            ("reshape", made.reshape(-1).reshape(shape)),
            ("cat", get_op("cat").call([made, made], 0)[: shape[0]]),
            ("equal", made),
        ):
            count += _same(got, wanted, f"{what} of {dtype.name}{list(shape)}")
        assert made.sum().item() == 0, f"sum of {dtype.name}{list(shape)}"
        assert (made == made).all().item() is True or dtype.name == "uint8"
        assert made.tolist() == wanted.tolist()
        count += 3
    return count


# --- what is declared ---------------------------------------------------------------------------


def check_declared_dtype(device: str, dtype: DType) -> int:
    """Check that a dtype can be used if it is declared, and is refused if the runtime says so."""
    runtime = runtime_of(device)
    names = DTYPE_CAPABILITIES.get(dtype.name, ())
    declared = all(name in runtime.capabilities for name in names)
    listed = runtime.dtypes is None or dtype in runtime.dtypes
    if declared and listed:
        made = tensor([1, 0, 1], dtype=dtype, device=device)
        assert made.dtype is dtype
        assert made.tolist() == [1, 0, 1], f"{device} does not hold {dtype.name}"
        return 2
    if names and declared:
        raise AssertionError(
            f"{device} declares {' and '.join(names)}, but its dtypes lack {dtype.name}"
        )
    if not listed:
        try:
            tensor([1], dtype=dtype, device=device)
        except TypeError:
            return 1
        raise AssertionError(f"{device} has no dtype {dtype.name}, but makes tensors of it")
    return 1


def check_views(device: str, dtype: DType) -> int:
    """Write through views and read the base, and the other way."""
    making.seed(f"views {dtype.name}")
    count = 0
    for name, show in VIEWS:
        base = making.make_tensor(4, 6, dtype=dtype, device=device)
        mirror = base.to(CPU, copy=True)
        view, expected = show(base), show(mirror)
        count += _same(view, expected.numpy(force=True), f"{name} of {dtype.name}")
        assert view.stride() == expected.stride(), f"{name}: strides {view.stride()}"
        assert view.storage_offset() == expected.storage_offset(), f"{name}: storage offset"
        changed, wanted = _other(view), _other(expected)
        view.copy_(changed)
        expected.copy_(wanted)
        count += _same(base, mirror.numpy(force=True), f"the base of a {name} written to")
        base.copy_(_other(base))
        mirror.copy_(_other(mirror))
        count += _same(view, expected.numpy(force=True), f"the {name} of a base written to")
        count += 2
    return count


VIEWS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("view", lambda t: t.view(3, 8)),
    ("slice", lambda t: t[1:3, ::2]),
    ("selection", lambda t: t[2]),
    ("transpose", lambda t: t.transpose(0, 1)),
    ("unsqueeze", lambda t: t.unsqueeze(1)),
    ("diagonal", lambda t: t.diagonal()),
    ("unfold", lambda t: t.unfold(1, 2, 2)),
    ("as_strided", lambda t: t.as_strided((2, 3), (7, 2), 1)),
    ("view of a view", lambda t: t[1:].t()[::3]),
)


def check_in_place(device: str, dtype: DType) -> int:
    """Write into tensors: the same memory, seen by every other tensor over it."""
    making.seed(f"in place {dtype.name}")
    count = 0
    for name, write in WRITES:
        target = making.make_tensor(3, 4, dtype=dtype, device=device)
        mirror = target.to(CPU, copy=True)
        alias, before = target.detach(), target.data_ptr()
        write(target)
        write(mirror)
        wanted = mirror.numpy(force=True)
        count += _same(target, wanted, f"{name} of {dtype.name}")
        count += _same(alias, wanted, f"{name} of {dtype.name}, seen through another tensor")
        assert target.data_ptr() == before, f"{name} moved the tensor"
    if "views" in runtime_of(device).capabilities:
        count += _check_overlapping(making.make_tensor(1, 4, dtype=dtype, device=device))
    return count


def _check_overlapping(row: Any) -> int:
    """Write where elements share memory: refused, and nothing is changed."""
    before = row.to(CPU, copy=True)
    rows = row.expand(3, 4)
    other = rows.clone()
    writes: tuple[Callable[[], Any], ...] = (
        lambda: rows.copy_(other),
        lambda: rows.add_(rows),
        lambda: get_op("add").call(other, other, out=rows),
    )
    for write in writes:
        message = "nothing"
        try:
            write()
        except RuntimeError as error:
            message = str(error)
        assert "single memory location" in message, (
            f"a write to elements that share memory has to be refused; it raised {message}"
        )
    return _same(row, before.numpy(force=True), "a refused write")


WRITES: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("fill_", lambda t: t.fill_(1)),
    ("zero_", lambda t: t.zero_()),
    ("copy_ of one row", lambda t: t[0].copy_(t[1])),
    ("assignment to a slice", lambda t: t.__setitem__((slice(None), slice(1, 3)), 1)),
    ("assignment by a mask", lambda t: t.__setitem__(t == t, 0)),
    ("add_", lambda t: t.add_(t)),  # exact in every dtype, as products are not
)


def check_host_memory(device: str) -> int:
    """Write to a tensor and read the NumPy array, and the other way."""
    made: Any = making.make_tensor(3, dtype=float32, device=device)
    array = made.numpy()
    made.fill_(5)
    assert array.tolist() == [5, 5, 5], "numpy() does not share the tensor's memory"
    array[0] = 7
    assert made.tolist() == [7, 5, 5], "the tensor does not see what is written to numpy()"
    return 2


class _Exporter:
    """What gives a tensor's memory to others, and is itself no tensor."""

    def __init__(self, tensor: Tensor) -> None:
        self.__dlpack__ = tensor.__dlpack__
        self.__dlpack_device__ = tensor.__dlpack_device__


def check_dlpack(device: str, dtype: DType) -> int:
    """Exchange through DLPack: the consumer sees the same elements, in the same memory."""
    making.seed(f"dlpack {dtype.name}")
    count = 0
    for shape in ((), (5,), (2, 3), (0, 3)):
        made = making.make_tensor(*shape, dtype=dtype, device=device)
        for given in (made, made.transpose(0, -1)) if len(shape) > 1 else (made,):
            taken = from_dlpack(_Exporter(given))
            assert taken.device == given.device, f"taken on {taken.device}, given on {given.device}"
            assert taken.dtype is dtype
            count += _same(taken, given.to(CPU).numpy(force=True), f"{dtype.name}{list(shape)}")
            if "in_place" in runtime_of(device).capabilities:
                taken.copy_(_other(taken))
                seen = taken.to(CPU).numpy(force=True)
                count += _same(given, seen, "memory that was given and written to")
    place, _ = making.make_tensor(1, dtype=dtype, device=device).__dlpack_device__()
    assert isinstance(int(place), int)
    return count + 1


def check_undeclared(device: str, capability: str) -> int:
    """Check that what is not declared is refused, as far as that can be seen."""
    assert capability in CAPABILITIES
    if capability == "dlpack":
        made = making.make_tensor(2, dtype=float32, device=device)
        try:
            made.__dlpack__()
        except BufferError:
            return 1
        raise AssertionError(f"{device} declares no dlpack, but exports through it")
    return 0


# --- random numbers -----------------------------------------------------------------------------


def _draws() -> dict[str, Callable[[str, Generator], Tensor]]:
    def by(name: str, *args: Any, **options: Any) -> Callable[[str, Generator], Tensor]:
        def draw(device: str, generator: Generator) -> Tensor:
            made = get_op(name).call(*args, device=device, generator=generator, **options)
            assert isinstance(made, Tensor)
            return made

        return draw

    return {
        "rand": by("rand", 5, 7),
        "randint": by("randint", 1000, (33,)),
        "randperm": by("randperm", 20),
    }


def check_random_bits(device: str) -> int:
    """Compare the words of Philox with the CPU's: for several seeds, from several places on."""
    place = Device(device)
    bits = get_op("philox_bits").call
    count = 0
    for seed in (0, 1, 2**63 + 5, 2**64 - 1):
        for offset in (0, 3, 2**32 - 1):
            for shape in ((), (4,), (3, 5), (0,)):
                got, wanted = bits(shape, seed, offset, place), bits(shape, seed, offset, CPU)
                what = f"words of seed {seed} from block {offset}"
                count += _same(got, wanted.numpy(force=True), what)
    return count


def check_random(device: str, name: str) -> int:
    """Compare a stream with the CPU's of the same seed, and with itself."""
    draw = DRAWS[name]
    stream, model = Generator(device).manual_seed(42), Generator().manual_seed(42)
    first = draw(device, stream)
    count = _same(first, draw("cpu", model).numpy(force=True), f"{name}, seed 42")
    second = draw(device, stream)
    count += _same(second, draw("cpu", model).numpy(force=True), f"{name}, its sequel")
    same_place = stream.get_state().tolist() == model.get_state().tolist()
    assert same_place, "the streams do not stand at the same place"
    assert first.tolist() != second.tolist(), f"{name} draws the same numbers again"
    again = draw(device, stream.manual_seed(42))
    count += _same(again, first.to(CPU).numpy(force=True), f"{name}, seeded anew")
    other = draw(device, stream.manual_seed(43))
    assert other.tolist() != first.tolist(), f"{name} draws the same numbers for another seed"
    return count + 3


DRAWS = _draws()


# --- time ---------------------------------------------------------------------------------------


def check_synchronize(device: str) -> int:
    """Queue work and look at the result: after synchronize, and through a copy that has to wait."""
    place = Device(device)
    runtime = runtime_of(device)
    count = 0
    for waits in (True, False):
        value = tensor([[0.0, 1.0], [1.0, 1.0]], dtype=float32, device=device)
        total = value
        for _ in range(30):
            total = total.matmul(value)
        if waits:
            runtime.synchronize(place.index or runtime.current_device())
        count += _same(total, np.array([[832040, 1346269], [1346269, 2178309]], "float32"), "power")
    source = tensor(list(range(1000)), dtype=int64)
    there = source.to(device, non_blocking=True)
    runtime.synchronize(place.index or runtime.current_device())
    count += _same(there, np.arange(1000), "a copy that does not block, after synchronize")
    back = there.to(CPU, non_blocking=True)
    runtime.synchronize(place.index or runtime.current_device())
    return count + _same(back, np.arange(1000), "a copy back that does not block")


def dtypes_of(device: str) -> Iterator[DType]:
    """Yield the dtypes that a device has."""
    return (dtype for dtype in ALL_DTYPES if not missing(device, dtype))
