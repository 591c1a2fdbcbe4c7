"""An op is its public name: nothing private stands behind it, and every name that users call leads to it."""

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug.core.dispatch import op_registry
from tensorplug.core.dispatch.arguments import plain_arguments
from tensorplug.core.plugins import discovery, entry_points
from tensorplug.core.tensor.base import TensorBase
from tensorplug.core.tensor.legacy import TensorType
from tensorplug.testing import cases
from tensorplug.testing.records import all_records

discovery.load_device(entry_points.EXTENSION)
RECORDS = {record.op: record for record in all_records()}
SPACES = {"linalg": tp.linalg, "fft": tp.fft, "special": tp.special, "nn.functional": F}

#: Functions of `tensorplug` that are no ops: they tell or set something, or are written in several ops.
#: Nor are the classes by which tensors of one dtype are made, such as `FloatTensor`.
NOT_OPS = frozenset(
    [
        "alias_copy",
        "are_deterministic_algorithms_enabled",
        "as_tensor",
        "asarray",
        "broadcast_shapes",
        "can_cast",
        "clear_autocast_cache",
        "compile",
        "compiled",
        "convolution",
        "detach",
        "detach_copy",
        "embedding_bag",
        "embedding_renorm_",
        "empty_permuted",
        "explain",
        "fallback_counts",
        "feature_dropout",
        "frobenius_norm",
        "from_dlpack",
        "from_file",
        "from_numpy",
        "frombuffer",
        "get_autocast_dtype",
        "get_default_device",
        "get_default_dtype",
        "get_deterministic_debug_mode",
        "get_device",
        "get_device_module",
        "get_float32_matmul_precision",
        "get_num_interop_threads",
        "get_num_threads",
        "get_printoptions",
        "get_rng_state",
        "grid_sampler",
        "grid_sampler_2d",
        "grid_sampler_3d",
        "gru_cell",
        "hspmm",
        "initial_seed",
        "is_anomaly_check_nan_enabled",
        "is_anomaly_enabled",
        "is_autocast_cache_enabled",
        "is_autocast_enabled",
        "is_complex",
        "is_conj",
        "is_deterministic_algorithms_warn_only_enabled",
        "is_floating_point",
        "is_grad_enabled",
        "is_inference",
        "is_inference_mode_enabled",
        "is_neg",
        "is_nonzero",
        "is_same_size",
        "is_signed",
        "is_storage",
        "is_tensor",
        "is_warn_always_enabled",
        "load",
        "lobpcg",
        "lstm_cell",
        "manual_seed",
        "narrow_copy",
        "native_batch_norm",
        "native_channel_shuffle",
        "native_dropout",
        "native_group_norm",
        "native_layer_norm",
        "norm_except_dim",
        "nuclear_norm",
        "numel",
        "pca_lowrank",
        "prefer",
        "printoptions",
        "promote_types",
        "resolve_conj",
        "resolve_neg",
        "result_type",
        "save",
        "seed",
        "set_anomaly_enabled",
        "set_autocast_cache_enabled",
        "set_autocast_dtype",
        "set_default_device",
        "set_default_dtype",
        "set_deterministic_debug_mode",
        "set_fallback",
        "set_float32_matmul_precision",
        "set_flush_denormal",
        "set_num_interop_threads",
        "set_num_threads",
        "set_printoptions",
        "set_rng_state",
        "set_warn_always",
        "show_config",
        "slice_copy",
        "smm",
        "sparse_bsc_tensor",
        "sparse_bsr_tensor",
        "sparse_compressed_tensor",
        "sparse_coo_tensor",
        "sparse_csc_tensor",
        "sparse_csr_tensor",
        "spmm",
        "sspaddmm",
        "svd_lowrank",
        "sym_constrain_range",
        "sym_constrain_range_for_size",
        "tensor",
        "to_dlpack",
        "typename",
        "use_deterministic_algorithms",
        "vmap",
    ]
)


def functions(space):
    for name in dir(space):
        value = getattr(space, name, None)
        if not name.startswith("_") and callable(value) and not isinstance(value, type):
            yield name, value


def test_no_op_is_private():
    private = [
        op.name for op in op_registry.all_ops() if op.name.rpartition(".")[2].startswith("_")
    ]
    assert not private


@pytest.mark.parametrize("space", SPACES)
def test_explain_accepts_every_public_function(space):
    refused = []
    for name, function in functions(SPACES[space]):
        for asked in (function, f"{space}.{name}"):
            try:
                tp.explain(asked)
            except (KeyError, TypeError) as error:
                refused.append(f"{asked}: {error}")
    assert not refused


def test_explain_accepts_every_function_of_the_package_that_is_an_op():
    refused = []
    for name, function in functions(tp):
        if name not in NOT_OPS and not isinstance(function, TensorType):
            try:
                tp.explain(function)
                tp.explain(name)
            except (KeyError, TypeError) as error:
                refused.append(f"{name}: {error}")
    assert not refused


@pytest.mark.parametrize(
    "op", [op.name for op in op_registry.all_ops() if op.canonical and op.name in RECORDS]
)
def test_a_rule_leaves_canonical_arguments_alone(op):
    found = op_registry.get_op(op)
    record = RECORDS[op]
    dtype = tp.float32 if tp.float32 in record.dtypes else record.dtypes[0]
    for sample in cases.samples_of(record, "cpu", dtype):
        values = found.arguments(sample.args, sample.kwargs)
        if isinstance(values, op_registry.Delegated):
            continue
        assert len(values) == len(found.parameters)
        args, kwargs = found.unbind(values)
        plain_arguments(found, args, kwargs)  # a call refuses none of them
        again = found.arguments(args, kwargs)
        assert not isinstance(again, op_registry.Delegated)
        for name, first, second in zip(found.parameters, values, again, strict=True):
            same = _equal(first, second)
            assert same, f"{op}: {name} is {first!r}, and then {second!r}"


def _equal(first, second):
    if isinstance(first, TensorBase):
        # A rule that looks at the data of one, to check it, returns another: so it looks again.
        return first is second or (first.dtype is second.dtype and tp.equal(first, second))
    if isinstance(first, (list, tuple)) and any(isinstance(v, TensorBase) for v in first):
        return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))
    return type(first) is type(second) and first == second


#: Views for some equations and sizes only, on which nobody relies.
SOMETIMES = ("channel_shuffle", "einsum", "pixel_shuffle", "pixel_unshuffle")


def test_an_op_that_shows_its_argument_says_so():
    """A kernel's result would otherwise be taken for new memory."""
    silent = set()
    for record in RECORDS.values():
        op = op_registry.get_op(record.op)
        if op.view or op.name in SOMETIMES:
            continue
        for sample in cases.samples_of(record, "cpu", record.dtypes[0]):
            result = op.call(*sample.args, **sample.kwargs)
            given = list(cases.tensors_in((sample.args, sample.kwargs)))
            bases = {id(t) for t in given} | {id(t._base) for t in given if t._is_view()}
            if any(t._is_view() and id(t._base) in bases for t in cases.tensors_in(result)):
                silent.add(op.name)
    assert not silent
