"""Where there is no memory, calls say so, and the process goes on: every op, forward and backward.

An op's call on large tensors is made in a child process that may have what it has already, and some megabytes
more at each attempt, until there is a result. Until then the error is `tp.OutOfMemoryError`.
"""

import ctypes
import functools
import itertools
import os
from pathlib import Path

import pytest
from benchmarks import database

import tensorplug as tp
from tensorplug.core.dispatch import op_registry
from tensorplug.core.plugins import manager
from tensorplug.testing import cases, children, making
from tensorplug.testing.records import all_records

resource = pytest.importorskip("resource", reason="memory cannot be limited here")
STATM = Path("/proc/self/statm")
if not STATM.exists():
    pytest.skip("what the process has is not told here", allow_module_level=True)
MALLOC, FREE = ctypes.CDLL(None).malloc, ctypes.CDLL(None).free
MALLOC.restype, MALLOC.argtypes, FREE.argtypes = (
    ctypes.c_void_p,
    [ctypes.c_size_t],
    [ctypes.c_void_p],
)

EVERY = 1 if os.environ.get("TENSORPLUG_FUZZ") else 8  # op
ELEMENTS = 400_000
MEGABYTE = 2**20
MEGABYTES = (0, 2, 8, 32)
PARTS = 4
SECONDS = 120
#: Results for each pair of elements, permutations as matrices; long loops.
LEFT_OUT = (
    "cartesian_prod", "combinations", "linalg_lu", "linalg_lu_factor", "linalg_lu_factor_ex", "lu",
    "lu_unpack", "conv_transpose2d", "conv_transpose3d", "ctc_loss", "ctc_loss_backward", "gru",
    "gru_layer", "gru_layer_backward", "lstm", "lstm_layer", "lstm_layer_backward",
)  # fmt: skip


def large_call(record):
    """Return a call of an op on large tensors that it takes, with gradients where they can be; or None."""
    making.seed(f"{record.op} memory")
    dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
    samples = record.samples(cases.Maker("cpu", dtype), dtype)
    for sample in itertools.islice(samples, 2):
        for call in database.grown((sample.args, sample.kwargs), ELEMENTS, tp):
            for tensor in cases.tensors_in(call):
                tensor.requires_grad_(tensor.is_floating_point())
            try:
                with_gradients(
                    op_registry.get_op(record.op), *call
                )  # which imports what it needs, too
            except Exception:
                continue  # not of these sizes
            return call
    return None


def with_gradients(op, args, kwargs):
    results = cases.tensors_in(op.call(*args, **kwargs))
    tracked = [result for result in results if result.requires_grad]
    if tracked:
        tp.autograd.backward(tracked, [tp.ones_like(result) for result in tracked])


def attempts(record, tell):
    """Tell how a call fails for which there is too little memory, with more of it each time."""
    op = op_registry.get_op(record.op)
    call = large_call(record)
    if call is None:
        return
    for megabytes in MEGABYTES:
        for tensor in cases.tensors_in(call):
            tensor.grad = None
        for part in manager.runtime_parts("cpu"):
            part.empty_cache()
        try:
            limited(megabytes, lambda: with_gradients(op, *call))
        except tp.OutOfMemoryError:
            tell("no memory")
            continue
        except Exception as error:
            tell(f"{op.name}, {megabytes} MB: {type(error).__name__}: {error}")
        return


def limited(megabytes, work):
    """Call a function with so much memory beside what there is, and one megabyte for Python itself."""
    _, most = before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used(), most))
    kept = list(iter(functools.partial(MALLOC, MEGABYTE), None))  # by the allocator, for later
    resource.setrlimit(resource.RLIMIT_AS, (used() + (megabytes + 1) * MEGABYTE, most))
    try:
        work()
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        for block in kept:
            FREE(block)


def used():
    return int(STATM.read_text().split()[0]) * resource.getpagesize()


@pytest.mark.parametrize("part", range(PARTS))
def test_calls_say_that_there_is_no_memory(part):
    wrong, refused = [], 0
    for record in list(all_records())[part :: PARTS * EVERY]:
        if record.op in LEFT_OUT:
            continue
        status, told = children.in_child(functools.partial(attempts, record), SECONDS)
        refused += told.count("no memory")
        wrong += [line for line in told if line != "no memory"]
        if status:
            wrong.append(f"{record.op}: exit status {status}")
    assert refused > 15
    assert not wrong, "\n".join(wrong)
