"""torch's own database of modules: ours, with the same weights, do the same, to the second derivative.

A sample of each module's inputs; all of them where TENSORPLUG_FUZZ is set.
"""

import copy
import importlib.util
import os
import pickle
import sys
import types
import unittest
import warnings
from unittest import mock

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="values are compared with torch's")


def database():
    if importlib.util.find_spec("expecttest") is None:
        # Named by what the database imports, for torch's tests alone.
        stand_in = types.ModuleType("expecttest")
        stand_in.TestCase = unittest.TestCase
        sys.modules["expecttest"] = stand_in
    with warnings.catch_warnings(), mock.patch("torch.backends.disable_global_flags"):
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_modules import module_db
    return module_db


INPUTS = 10**6 if "TENSORPLUG_FUZZ" in os.environ else 3
DRAWN = ("Dropout", "RReLU", "FractionalMaxPool")  # in training, from generators of their own
REFUSED = {"LinearCrossEntropyLoss": "a prototype of torch"}
#: Ours is the derivative; torch's is that of the softmax in front of it, see the page of deviations.
OF_LOGITS = ("CTCLoss",)

CASES = [
    pytest.param(info, training, id=f"{info.name.removeprefix('nn.')}-{mode}")
    for info in database()
    for mode, training in (("train", True), ("eval", False))
    if (training or info.train_and_eval_differ) and info.module_cls.__name__ not in REFUSED
]


class Translated:
    """Values of torch's as ours; what is one object there is one here."""

    def __init__(self):
        self.known = {}

    def __call__(self, value):
        if isinstance(value, torch.Tensor):
            if id(value) not in self.known:
                made = tp.from_numpy(value.detach().clone().numpy())
                self.known[id(value)] = value, made.requires_grad_(value.requires_grad)
            return self.known[id(value)][1]
        if isinstance(value, (list, tuple)):
            return type(value)([self(item) for item in value])
        if isinstance(value, dict):
            return {key: self(item) for key, item in value.items()}
        if isinstance(value, torch.nn.Module):
            return copied(value)
        if isinstance(value, torch.dtype):
            return getattr(tp, str(value).removeprefix("torch."))
        if isinstance(value, torch.device):
            return str(value)
        if callable(value) and hasattr(tp.nn.functional, getattr(value, "__name__", "")):
            return getattr(tp.nn.functional, value.__name__)
        return value


def copied(module):
    """Return our module for an argument that is one of torch's: an activation, a norm, a layer to repeat."""
    make = getattr(tp.nn, type(module).__name__)
    if isinstance(module, torch.nn.TransformerEncoderLayer):
        attention, activation = (
            module.self_attn,
            getattr(tp.nn.functional, module.activation.__name__),
        )
        made = make(
            attention.embed_dim, attention.num_heads, module.linear1.out_features, module.dropout.p,
            activation, module.norm1.eps, attention.batch_first, module.norm_first,
            module.linear1.bias is not None,
        )  # fmt: skip
    else:
        made = make(*getattr(module, "normalized_shape", ()))
    return made.to(tp.float64)


def tensors(value):
    if isinstance(value, (torch.Tensor, tp.Tensor)):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in tensors(item)]
    return []


def numbers(tensor):
    """Return an array; what torch knows to be zeros has none."""
    if isinstance(tensor, torch.Tensor):
        return tensor.detach().clone().numpy(force=True)
    return tensor.detach().numpy()


def assert_alike(ours, theirs, tolerance=1e-9):
    expected = numbers(theirs)
    assert numbers(ours).dtype == expected.dtype
    np.testing.assert_allclose(numbers(ours), expected, rtol=tolerance, atol=tolerance)


def chosen(inputs):
    """Return a few of a module's inputs, first and last among them."""
    inputs = [one for one in inputs if one.forward_input is not None]
    places = np.linspace(0, len(inputs) - 1, min(INPUTS, len(inputs))).round()
    return [inputs[int(place)] for place in places]


@pytest.mark.filterwarnings("ignore")  # torch's
@pytest.mark.parametrize(("info", "training"), CASES)
def test_a_module_does_what_torchs_does(info, training):
    name = info.module_cls.__name__
    given = info.module_inputs_func(
        info, device="cpu", dtype=torch.float64, requires_grad=True, training=training
    )
    for one in chosen(given):
        translated = Translated()
        constructor, call = one.constructor_input, one.forward_input
        theirs = info.module_cls(*constructor.args, **constructor.kwargs)
        theirs = theirs.to(torch.float64).train(training)
        ours = getattr(tp.nn, name)(*translated(constructor.args), **translated(constructor.kwargs))
        ours = ours.to(tp.float64).train(training)
        if name.startswith("Lazy"):
            theirs(*call.args, **call.kwargs)
            ours(*translated(call.args), **translated(call.kwargs))
        assert repr(ours) == repr(theirs)
        weights = theirs.state_dict()
        assert [(k, tuple(v.shape)) for k, v in ours.state_dict().items()] == [
            (k, tuple(v.shape)) for k, v in weights.items()
        ]
        ours.load_state_dict({key: translated(value) for key, value in weights.items()})
        assert repr(pickle.loads(pickle.dumps(copy.deepcopy(ours)))) == repr(ours)
        draws = training and (getattr(theirs, "dropout", 0) or name.startswith(DRAWN))
        if not (draws or name.endswith("AlphaDropout")):
            compare(theirs, ours, call, translated, name)


def compare(theirs, ours, call, translated, name):
    expected = theirs(*call.args, **call.kwargs)
    found = ours(*translated(call.args), **translated(call.kwargs))
    assert len(tensors(found)) == len(tensors(expected))
    for result, wanted in zip(tensors(found), tensors(expected), strict=True):
        assert_alike(result, wanted)
        assert result.requires_grad == wanted.requires_grad
        if wanted.numel():
            assert result.stride() == wanted.stride()
    for key, value in theirs.state_dict().items():
        assert_alike(ours.state_dict()[key], value)

    # --- gradients, and gradients of these in some direction
    inputs = {id(t): t for t in tensors([call.args, call.kwargs]) if t.requires_grad}
    targets = [*inputs.values(), *theirs.parameters()]
    mine = [*map(translated, inputs.values()), *ours.parameters()]
    pairs = [
        (result, wanted)
        for result, wanted in zip(tensors(found), tensors(expected), strict=True)
        if wanted.requires_grad
    ]
    if not pairs or name in OF_LOGITS:
        return
    results, outputs = zip(*pairs, strict=True)
    weights = [torch.randn_like(wanted) for wanted in outputs]
    options = {"allow_unused": True, "create_graph": True}
    first = torch.autograd.grad(outputs, targets, weights, **options)
    own = tp.autograd.grad(results, mine, translated(weights), **options)
    assert [g is None for g in own] == [g is None for g in first]
    for gradient, wanted in zip(own, first, strict=True):
        if wanted is not None:
            assert_alike(gradient, wanted, 1e-8)
    again = [
        n for n, gradient in enumerate(first) if gradient is not None and gradient.requires_grad
    ]
    weights = [torch.randn_like(first[n]) for n in again]
    second = second_of([first[n] for n in again], targets, weights)
    if second is None:
        return
    # torch has a gradient of zeros where ours is known to be constant.
    steady = [own[n].requires_grad for n in again]
    chosen_ = [own[n] for n, varies in zip(again, steady, strict=True) if varies]
    given = [translated(w) for w, varies in zip(weights, steady, strict=True) if varies]
    ended = (
        tp.autograd.grad(chosen_, mine, given, allow_unused=True) if chosen_ else [None] * len(mine)
    )
    for gradient, wanted, target in zip(ended, second, targets, strict=True):
        zeros = torch.zeros_like(target)
        assert_alike(
            translated(zeros) if gradient is None else gradient,
            zeros if wanted is None else wanted,
            1e-7,
        )


def second_of(gradients, targets, weights):
    """Return torch's second derivatives, or None where it has none."""
    if not gradients:
        return None
    try:
        return torch.autograd.grad(gradients, targets, weights, allow_unused=True)
    except RuntimeError as error:
        if "is not implemented" not in str(error):
            raise
    return None
