"""Every op has samples, something to compare its results with, and a derivative or a stated none."""

import tensorplug.amp
import tensorplug.autograd
import tensorplug.nn  # noqa: F401  # each registers ops
from tensorplug.autograd.engine import derivatives
from tensorplug.core.dispatch.op_registry import all_ops
from tensorplug.optim.ops.optimizers.fused import FUSED
from tensorplug.optim.ops.optimizers.on_device import ON_DEVICE
from tensorplug.testing.records import all_records

COPIES = "the suite's cases of a device copy, convert and lay out tensors"
WRITES = "tests of their own compare these writes with torch's: tests/optim, tests/amp, tests/nn, tests/ops"
NO_RECORD = {
    **dict.fromkeys(("cast", "clone", "clone_strided", "contiguous", "copy", "to_device"), COPIES),
    **dict.fromkeys(
        (
            "amp.unscale",
            "amp.update_scale",
            "batch_norm_update_stats",
            "embedding_renorm",
            "index_write",
            *[function.op.name for function in (*FUSED, *ON_DEVICE)],
        ),
        WRITES,
    ),
    "linalg_check_errors": "returns its argument or raises, see tests/ops/test_linalg.py",
}


def own_ops():
    return [op for op in all_ops() if op.owner.startswith(("tensorplug", "nn", "optim", "amp"))]


def test_every_op_has_samples():
    ops = {op.name for op in own_ops()}
    assert len(ops) > 500
    assert ops - {record.op for record in all_records()} == set(NO_RECORD)


def test_every_record_has_a_reference_or_a_check():
    assert not {r.op for r in all_records() if r.reference is None and r.check is None}


def test_every_primitive_has_a_derivative_or_a_stated_none():
    primitives = {op.name for op in own_ops() if op.kind == "primitive"}
    assert primitives <= set(derivatives.DERIVATIVE_RULES.active)
