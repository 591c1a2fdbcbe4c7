"""What modules and losses say of arguments that do not fit, in torch's words."""

import re

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="the words are torch's")


def weighted(loss, dtype):
    return lambda L: getattr(L.nn.functional, loss)(
        L.zeros(2, 3), L.tensor([0, 1]), weight=L.ones(3, dtype=getattr(L, dtype))
    )


CASES = {
    **{
        f"{loss}-{dtype}": weighted(loss, dtype)
        for loss in ("nll_loss", "cross_entropy", "multi_margin_loss")
        for dtype in ("float64", "float16", "int64", "float32")
    },
    "cross_entropy-target": lambda L: L.nn.functional.cross_entropy(L.zeros(2, 3), L.zeros(2)),
    "multi_margin_loss-target": lambda L: L.nn.functional.multi_margin_loss(
        L.zeros(5, 4), L.tensor([1, 2, 3])
    ),
    "embedding": lambda L: L.nn.Embedding(3, 2)(L.zeros(2)),
    "LSTM": lambda L: L.nn.LSTM(3, 4)(L.zeros(2, 3).double()),
    "LSTMCell": lambda L: L.nn.LSTMCell(3, 4)(L.zeros(2, 3), (L.zeros(2, 4), L.zeros(1, 1, 2, 4))),
    "GRUCell": lambda L: L.nn.GRUCell(3, 4)(L.zeros(2, 3), L.zeros(1, 1, 2, 4)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_as_torch(case):
    try:
        wanted = case(torch)
    except Exception as error:
        words = re.sub(r"\btorch\.", "tensorplug.", str(error))
        with pytest.raises(type(error), match=re.escape(words)):
            case(tp)
    else:
        assert case(tp).item() == pytest.approx(wanted.item())


def test_autocast_brings_weights_to_the_dtype_of_the_input():
    with tp.autocast("cpu", dtype=tp.bfloat16):
        loss = tp.nn.functional.cross_entropy(
            tp.zeros(2, 3, dtype=tp.bfloat16), tp.tensor([0, 1]), weight=tp.ones(3)
        )
    assert loss.dtype is tp.float32


def test_random_tensors_for_tests_lie_on_the_default_device():
    assert tp.testing.make_tensor(2, dtype=tp.float32, device=None).device == tp.device("cpu")
    with tp.device("meta"):
        assert tp.testing.make_tensor(2, dtype=tp.float32, device=None).is_meta
