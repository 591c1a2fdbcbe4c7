"""Records of attention, and of its gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from tensorplug.core.device.dtypes import FLOATS, DType, bool_, dtype_named, float32

from ..records import OpRecord, Sample


def _samples(make: Any, dtype: DType) -> Iterator[Sample]:
    def triple(
        *batch: int, length: int = 3, source: int = 4, size: int = 2, values: int = 3
    ) -> Any:
        shapes = ((length, size), (source, size), (source, values))
        return [make(*batch, *shape, low=-1.0, high=1.0) for shape in shapes]

    yield Sample(triple(), None, False, 0.5)
    yield Sample(triple(2, 2, length=4), None, True, 0.7)
    yield Sample(triple(2), make(2, 1, 4, low=-1.0, high=1.0), False, 1.0, label="numbers added")
    allowed = make(3, 4, dtype=bool_)
    allowed[:, 0] = True  # of a row with nothing to see the logarithm is infinite
    yield Sample(triple(2), allowed, False, 1.0, label="allowed or not")
    yield Sample(triple(0), None, False, 1.0)


def _scores(inputs: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    query, key, _ = inputs
    scores = np.einsum("...le,...se->...ls", query, key) * scale
    if is_causal:
        mask = np.tril(np.ones(scores.shape[-2:], bool))
    if mask is None:
        return scores
    return np.where(mask, scores, -np.inf) if mask.dtype == bool else scores + mask


def _attention(inputs: Any, mask: Any, is_causal: bool, scale: float) -> Any:
    raised = np.exp(_scores(inputs, mask, is_causal, scale))
    total = raised.sum(-1)
    weights = raised / np.where(total == 0, 1, total)[..., None]
    with np.errstate(divide="ignore"):
        return np.einsum("...ls,...sv->...lv", weights, inputs[2]), np.log(total)


def _gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in _samples(make, dtype):
        inputs, mask, is_causal, scale = sample.args
        output, logsumexp = (
            make(*inputs[0].shape[:-1], inputs[2].shape[-1]), make(*inputs[0].shape[:-1], low=2.0, high=3.0)
        )  # fmt: skip
        g_output, g_logsumexp = make(*output.shape), make(*logsumexp.shape)
        yield Sample(
            g_output,
            g_logsumexp,
            inputs,
            mask,
            output,
            logsumexp,
            is_causal,
            scale,
            label=sample.label,
        )


def _gradient(
    g: Any,
    g_total: Any,
    inputs: Any,
    mask: Any,
    output: Any,
    total: Any,
    is_causal: bool,
    scale: float,
) -> Any:
    query, key, value = inputs
    weights = np.exp(_scores(inputs, mask, is_causal, scale) - total[..., None])
    along = (g * output).sum(-1) - g_total
    inner = np.einsum("...lv,...sv->...ls", g, value) - along[..., None]
    g_scores = weights * inner * scale
    return (
        np.einsum("...ls,...se->...le", g_scores, key),
        np.einsum("...ls,...le->...se", g_scores, query),
        np.einsum("...ls,...lv->...sv", weights, g),
    )


# The inputs are rounded to half precision, and so are, in the gradient, the outputs that are given.
_HALF: dict[str, float] = {"float16": 3e-2, "bfloat16": 2e-1}
_ORDER = {"float32": 1e-5}


def _half_gradient_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in _samples(make, dtype):
        inputs, mask, is_causal, scale = sample.args
        batch = inputs[0].shape[:-1]
        g, output = (make(*batch, inputs[2].shape[-1], low=-1.0, high=1.0) for _ in range(2))
        logsumexp = make(*batch, dtype=float32, low=2.0, high=3.0)
        yield Sample(g, inputs, mask, output, logsumexp, is_causal, scale, label=sample.label)


def _half_gradient(
    g: Any, inputs: Any, mask: Any, output: Any, total: Any, is_causal: bool, scale: float
) -> Any:
    return _gradient(g, 0 * total, inputs, mask, output, total, is_causal, scale)


_HALVES = (dtype_named("float16"), dtype_named("bfloat16"))


def _call_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for sample in _samples(make, dtype):
        inputs, mask, is_causal, scale = sample.args
        options = {"attn_mask": mask, "is_causal": is_causal, "scale": scale}
        yield Sample(*inputs, label=sample.label, **options)
    yield Sample(*[make(2, 2, 3, 4) for _ in range(3)])


def _call(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    is_causal: bool = False,
    scale: Any = None,
) -> Any:
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    return _attention([query, key, value], attn_mask, is_causal, factor)[0]


def _heads_samples(make: Any, dtype: DType) -> Iterator[Sample]:
    for batch in ((2,), (), (0,)):
        x = [make(length, *batch, 4, low=-1.0, high=1.0) for length in (3, 2, 2)]
        weights = [make(12, 4, low=-0.5, high=0.5), make(12), None, None, False, 0.0]
        yield Sample(*x, 4, 2, *weights, make(4, 4, low=-0.5, high=0.5), make(4))


def _heads(
    query: Any, key: Any, value: Any, size: int, heads: int, weight: Any, bias: Any, *rest: Any
) -> Any:
    *_, out_weight, out_bias = rest
    projected = [
        np.moveaxis((x @ w.T + b).reshape(*x.shape[:-1], heads, size // heads), 0, -2)
        for x, w, b in zip(
            (query, key, value), weight.reshape(3, size, size), bias.reshape(3, size), strict=True
        )
    ]
    q, k, _ = projected
    factor = 1 / math.sqrt(size // heads)
    raised = np.exp(np.einsum("...le,...se->...ls", q, k) * factor)
    output = _attention(projected, None, False, factor)[0]
    output = np.moveaxis(output, -2, 0).reshape(query.shape)
    return output @ out_weight.T + out_bias, (raised / raised.sum(-1, keepdims=True)).mean(-3)


RECORDS = [
    OpRecord(
        "scaled_dot_product_attention",
        _call_samples,
        _call,
        dtypes=FLOATS,
        atol=_HALF,
        rtol=_ORDER,
        torch="nn.functional.scaled_dot_product_attention",
    ),
    OpRecord(
        "multi_head_attention_forward",
        _heads_samples,
        _heads,
        dtypes=FLOATS,
        atol=_HALF,
        rtol=_ORDER,
        torch="nn.functional.multi_head_attention_forward",
    ),
    OpRecord(
        "scaled_dot_product_flash_attention",
        _samples,
        _attention,
        dtypes=_HALVES,
        atol=_HALF,
        torch="",
    ),
    OpRecord(
        "scaled_dot_product_flash_attention_backward",
        _half_gradient_samples,
        _half_gradient,
        dtypes=_HALVES,
        atol=_HALF,
        torch="",
    ),
    OpRecord(
        "scaled_dot_product_efficient_attention",
        _samples,
        _attention,
        dtypes=FLOATS,
        atol=_HALF,
        rtol=_ORDER,
        torch="",
    ),
    OpRecord(
        "scaled_dot_product_efficient_attention_backward",
        _gradient_samples,
        _gradient,
        dtypes=FLOATS,
        atol=_HALF,
        rtol=_ORDER,
        torch="",
    ),
]
