"""Modules of complex numbers: gradients of those that take them, and the others refuse them as torch does."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.autograd import gradcheck, gradgradcheck

try:
    import torch
except ImportError:
    torch = None  # type: ignore[assignment]

COMPLEX = tp.complex128
VECTORS, SIGNAL, IMAGE, VOLUME = (2, 4), (1, 4, 5), (1, 4, 4, 4), (1, 4, 3, 3, 3)

#: By name: the class, its arguments and options, and the shapes of the inputs.
TAKEN: dict[str, tuple[str, tuple[Any, ...], dict[str, Any], tuple[tuple[int, ...], ...]]] = {
    "Linear": ("Linear", (4, 3), {}, (VECTORS,)),
    "Bilinear": ("Bilinear", (4, 4, 2), {}, (VECTORS, VECTORS)),
    "Conv1d": ("Conv1d", (4, 2, 3), {"padding": "same"}, (SIGNAL,)),
    "Conv2d": ("Conv2d", (4, 2, 3), {"groups": 2}, (IMAGE,)),
    "Conv2d circular": ("Conv2d", (4, 2, 3), {"padding": 1, "padding_mode": "circular"}, (IMAGE,)),
    "Conv3d": ("Conv3d", (4, 2, 2), {}, (VOLUME,)),
    "ConvTranspose1d": ("ConvTranspose1d", (4, 2, 3), {"stride": 2}, (SIGNAL,)),
    "RMSNorm": ("RMSNorm", (4,), {}, (VECTORS,)),
    "RNN": ("RNN", (4, 2), {"bidirectional": True}, ((3, 1, 4),)),
    "LSTM": ("LSTM", (4, 2), {}, ((3, 1, 4),)),
    "LSTM of two layers": ("LSTM", (4, 2), {"num_layers": 2, "bidirectional": True}, ((2, 1, 4),)),
    "LSTM projected": ("LSTM", (4, 3), {"proj_size": 2}, ((2, 1, 4),)),
    "LSTM without bias": ("LSTM", (4, 2), {"bias": False}, ((2, 1, 4),)),
    "GRU": ("GRU", (4, 2), {}, ((3, 1, 4),)),
    "GRU of two layers": ("GRU", (4, 2), {"num_layers": 2, "bidirectional": True}, ((2, 1, 4),)),
    "RNNCell": ("RNNCell", (4, 2), {}, (VECTORS,)),
    "LSTMCell": ("LSTMCell", (4, 2), {}, (VECTORS,)),
    "GRUCell": ("GRUCell", (4, 2), {}, (VECTORS,)),
    "SiLU": ("SiLU", (), {}, (VECTORS,)),
    "Sigmoid": ("Sigmoid", (), {}, (VECTORS,)),
    "Tanh": ("Tanh", (), {}, (VECTORS,)),
    "Tanhshrink": ("Tanhshrink", (), {}, (VECTORS,)),
    "Softsign": ("Softsign", (), {}, (VECTORS,)),
    "AvgPool2d": ("AvgPool2d", (2,), {}, (IMAGE,)),
    "AdaptiveAvgPool2d": ("AdaptiveAvgPool2d", (2,), {}, (IMAGE,)),
    "ReflectionPad2d": ("ReflectionPad2d", (1,), {}, (IMAGE,)),
    "Unfold": ("Unfold", (2,), {}, (IMAGE,)),
    "L1Loss": ("L1Loss", (), {}, (VECTORS, VECTORS)),
    "PairwiseDistance": ("PairwiseDistance", (), {}, (VECTORS, VECTORS)),
}
#: What has no meaning of complex numbers, or several.
REFUSED = {
    "BatchNorm1d": ("BatchNorm1d", (4,), (VECTORS,)),
    "BatchNorm2d": ("BatchNorm2d", (4,), (IMAGE,)),
    "InstanceNorm2d": ("InstanceNorm2d", (4,), (IMAGE,)),
    "LayerNorm": ("LayerNorm", (4,), (VECTORS,)),
    "GroupNorm": ("GroupNorm", (2, 4), (IMAGE,)),
    "LocalResponseNorm": ("LocalResponseNorm", (2,), (IMAGE,)),
    "MaxPool1d": ("MaxPool1d", (2,), (SIGNAL,)),
    "MaxPool2d": ("MaxPool2d", (2,), (IMAGE,)),
    "MaxPool3d": ("MaxPool3d", (2,), (VOLUME,)),
    "FractionalMaxPool2d": ("FractionalMaxPool2d", (2, 2), (IMAGE,)),
    "AdaptiveMaxPool1d": ("AdaptiveMaxPool1d", (2,), (SIGNAL,)),
    "AdaptiveMaxPool2d": ("AdaptiveMaxPool2d", (2,), (IMAGE,)),
    "AdaptiveMaxPool3d": ("AdaptiveMaxPool3d", (2,), (VOLUME,)),
    "MSELoss": ("MSELoss", (), (VECTORS, VECTORS)),
    "SmoothL1Loss": ("SmoothL1Loss", (), (VECTORS, VECTORS)),
    "HuberLoss": ("HuberLoss", (), (VECTORS, VECTORS)),
    "CosineSimilarity": ("CosineSimilarity", (), (VECTORS, VECTORS)),
    "ReLU": ("ReLU", (), (VECTORS,)),
    "GELU": ("GELU", (), (VECTORS,)),
    "Softmax": ("Softmax", (1,), (VECTORS,)),
}


def made(m: Any, name: str, args: tuple[Any, ...], options: dict[str, Any], dtype: Any) -> Any:
    try:
        return getattr(m.nn, name)(*args, **options, dtype=dtype)
    except TypeError:
        return getattr(m.nn, name)(*args, **options)


def first(result: Any) -> Any:
    while isinstance(result, tuple):
        result = result[0]
    return result


@pytest.mark.parametrize("case", TAKEN)
def test_gradients(case: str) -> None:
    name, args, options, shapes = TAKEN[case]
    tp.manual_seed(0)
    module = made(tp, name, args, options, COMPLEX)
    inputs = [tp.randn(shape, dtype=COMPLEX, requires_grad=True) for shape in shapes]
    names = [key for key, _ in module.named_parameters()]
    values = [value.detach().clone().requires_grad_() for value in module.parameters()]

    def function(*given: Any) -> Any:
        parameters = dict(zip(names, given[len(inputs) :], strict=True))
        return first(tp.func.functional_call(module, parameters, given[: len(inputs)]))

    assert all(value.is_complex() for value in values)
    assert gradcheck(function, (*inputs, *values), fast_mode=True, check_forward_ad=True)
    if case in ("LSTM", "GRU", "LSTMCell", "GRUCell"):
        assert gradgradcheck(function, (*inputs, *values), fast_mode=True)


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    name, args, shapes = REFUSED[case]

    def call(m: Any) -> None:
        module = made(m, name, args, {}, m.complex64)
        module(*[m.ones(shape, dtype=m.complex64) for shape in shapes])

    of_either(call)


def of_either(call: Any) -> None:
    """Assert that a call of a module is refused, by torch as well where there is one."""
    for m in (tp, torch):
        if m is not None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                with pytest.raises((NotImplementedError, RuntimeError)):
                    call(m)


def test_norms_of_complex_numbers_are_refused_in_evaluation_too() -> None:
    module = nn.BatchNorm1d(4, dtype=tp.complex64).eval()
    with pytest.raises(NotImplementedError, match="batch_norm"):
        module(tp.ones(2, 4, dtype=tp.complex64))


@pytest.mark.parametrize("dtype", ["complex64", "int64", "bool"])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"dropout_p": 0.5}], ids=str)
def test_attention_without_a_softmax_is_refused(dtype: str, options: dict[str, Any]) -> None:
    def call(m: Any) -> None:
        x = m.ones(2, 3, 4).to(getattr(m, dtype))
        m.nn.functional.scaled_dot_product_attention(x, x, x, **options)

    of_either(call)
