"""Strides of meta results are those of computed ones: over all ops, layouts and each plugin's kernels."""

import itertools

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.core.dispatch import call_cache
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.core.dispatch.resolution import native_kernel
from tensorplug.testing.cases import layouts_of, map_tensors, samples_of, tensors_in
from tensorplug.testing.records import all_records

_ROWS = "the compiled kernel's result lies row by row, torch's and the body's as the input does"
_HEADS = (
    "the compiled kernel lays the heads of a position side by side, the body one behind the other"
)
_TRIANGLE = "of a batch of matrices that lies in another order the compiled kernel makes rows"
_LIBRARY = "as the array library's function leaves it"
#: Ops whose results on meta lie in another way than some backend's, and why.
OTHER = {
    "conv_tbc": "what its transposed views come to",
    "angle": "where a kernel passes real numbers on to the body, as the steps of that lead",
    "fill": "what is copied in has the order of memory of a new tensor, on meta that of the old one",
    "native_dropout_backward": _ROWS,
    "normalize": _ROWS,
    "normalize_backward": _ROWS,
    "gumbel_softmax": _ROWS,
    "log_softmax": _ROWS,
    "log_softmax_backward": _ROWS,
    "softmax": _ROWS,
    "softmax_backward": _ROWS,
    "softmin": _ROWS,
    "scaled_dot_product_attention": _HEADS,
    "scaled_dot_product_efficient_attention": _HEADS,
    "scaled_dot_product_efficient_attention_backward": _HEADS,
    "scaled_dot_product_flash_attention": _HEADS,
    "scaled_dot_product_flash_attention_backward": _HEADS,
    "tril": _TRIANGLE,
    "triu": _TRIANGLE,
    "lu_unpack": _TRIANGLE,
    "frexp": _LIBRARY,
    "linalg_qr": _LIBRARY,
    "qr": _LIBRARY,
    "nll_loss": _LIBRARY,
    "cross_entropy": _LIBRARY,
}
RECORDS = [
    record
    for record in all_records()
    if record.op not in OTHER and "meta" not in record.skips and not get_op(record.op).writes
]
PARTS = 4


def in_order(tensor, dims):
    """Return a copy whose dimensions follow each other in memory as `dims` lists them."""
    back = [dims.index(dim) for dim in range(tensor.ndim)]
    return tensor.permute(dims).contiguous().permute(back)


LAYOUTS = {
    "rows": lambda t: t.clone(),
    "transposed": lambda t: in_order(t, [*range(t.ndim - 2), t.ndim - 1, t.ndim - 2]),
    "reversed": lambda t: in_order(t, list(range(t.ndim))[::-1]),
    "channels last": lambda t: in_order(t, [0, *range(2, t.ndim), 1]),
    "first last": lambda t: in_order(t, [*range(1, t.ndim), 0]),
    "expanded": lambda t: t[:1].clone().expand(t.shape),
    "sliced": lambda t: t.unsqueeze(-1).expand(*t.shape, 2).contiguous()[..., 0],
}


def laid_out(tensor, layout):
    tensor = tensor.detach()
    if tensor.ndim < 2 or not tensor.numel():
        return tensor.clone()
    return LAYOUTS[layout](tensor)


def on_meta(tensor):
    return tp.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def strides(results):
    """Return the strides of the tensors in a result, along all dimensions that have any."""
    return [
        [step for step, size in zip(t.stride(), t.shape, strict=True) if size > 1]
        for t in tensors_in(results)
        if t.numel()
    ]


def kernels_of():
    """Return the plugins that bring kernels for the CPU."""
    tp.ones(1).add(1)
    return [
        record.name
        for record in tp.plugins.registered()
        if any(kernel.device == "cpu" for kernel in record.kernels)
    ]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # deprecated calls are among the samples
@pytest.mark.parametrize("plugin", kernels_of())
@pytest.mark.parametrize("start", range(PARTS))
def test_strides_on_meta(start, plugin):
    call_cache.clear_call_caches()
    compared, wrong = 0, {}
    dtypes = tp.float32, tp.complex64, tp.int64, tp.bool
    with tp.no_grad(), tp.prefer(plugin):
        for record in itertools.islice(RECORDS, start, None, PARTS):
            dtype = next((d for d in dtypes if d in record.dtypes), record.dtypes[0])
            op, key = get_op(record.op), tp.empty(0, dtype=dtype)._key
            if op.elementwise and op.kind == "composite" and not native_kernel(op, key):
                continue  # the strides are those of the steps of the body
            layouts = LAYOUTS if len(layouts_of(record)) > 1 else ["rows"]
            for sample, layout in itertools.product(samples_of(record, "cpu", dtype), layouts):
                made, found = both(op, sample, layout)
                compared += bool(made)
                if made != found:
                    wrong[record.op] = layout, made, found
    assert not wrong
    assert compared > 1000


def both(op, sample, layout):
    """Return the strides of what a call gives, and on meta; None twice if it gives nothing there."""
    args, kwargs = map_tensors((sample.args, sample.kwargs), lambda t: laid_out(t, layout))
    try:
        made = strides(op.call(*args, **kwargs))
    except (np.linalg.LinAlgError, RuntimeError, IndexError):
        # A matrix whose rows are all the same has no inverse; some views are not there for some strides.
        return None, None
    shown_args, shown = map_tensors((args, kwargs), on_meta)
    if "device" in shown:
        shown["device"] = "meta"
    found = op.call(*shown_args, **shown)
    if not all(t._key.is_meta for t in tensors_in(found)):
        return None, None
    return made, strides(found)
