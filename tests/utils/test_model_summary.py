"""tp.utils.summary: shapes, parameters and multiply-adds, against counts by hand and by torch."""

import itertools

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.utils import summary


def products(sizes):
    """The multiply-adds of linear layers of these sizes, for one row."""
    return sum(a * b for a, b in itertools.pairwise(sizes))


LAYERS = {
    "linear": (nn.Linear(3, 4), (5, 3), 5 * 12),
    "linear of more dimensions": (nn.Linear(3, 4, bias=False), (2, 5, 3), 10 * 12),
    "conv1d": (nn.Conv1d(2, 6, 3, padding=1), (4, 2, 10), 4 * 10 * 6 * 2 * 3),
    "conv2d": (nn.Conv2d(3, 8, 3, stride=2), (2, 3, 9, 9), 2 * 16 * 8 * 3 * 9),
    "conv2d in groups": (nn.Conv2d(4, 8, 3, groups=4), (1, 4, 5, 5), 9 * 8 * 9),
    "conv3d": (nn.Conv3d(1, 2, 2), (1, 1, 3, 3, 3), 8 * 2 * 8),
    "conv_transpose2d": (nn.ConvTranspose2d(3, 8, 3), (2, 3, 4, 4), 2 * 16 * 3 * 8 * 9),
    "lstm": (nn.LSTM(3, 4), (5, 2, 3), 10 * 16 * (3 + 4)),
    "gru of two layers": (nn.GRU(3, 4, num_layers=2), (5, 2, 3), 10 * 12 * (3 + 4 + 4 + 4)),
    "norm": (nn.BatchNorm2d(3), (2, 3, 4, 4), 0),
}
RECURRENT = ("lstm", "gru of two layers")


@pytest.mark.parametrize("name", LAYERS)
def test_multiply_adds_of_a_layer(name):
    layer, shape, expected = LAYERS[name]
    found = summary(layer, shape)
    assert found.multiply_adds == expected
    assert found.rows[0].shapes[0] == tuple(layer(tp.zeros(shape))[0].shape) or found.rows[0].shapes
    assert found.parameters == sum(p.numel() for p in layer.parameters())


def test_attention_counts_scores_and_values():
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = tp.zeros(2, 5, 8)
    projections, scores = 4 * 10 * 64, 2 * 2 * (2 * 5 * 5 * 4)
    assert summary(layer, x, x, x).multiply_adds == projections + scores


def test_rows_of_a_nest():
    model = nn.Sequential(nn.Linear(2, 32), nn.Sequential(nn.ReLU(), nn.Linear(32, 2)))
    found = summary(model, (8, 2))
    assert [(row.path, row.depth, row.kind) for row in found.rows] == [
        ("", 0, "Sequential"), ("0", 1, "Linear"), ("1", 1, "Sequential"), ("1.0", 2, "ReLU"),
        ("1.1", 2, "Linear"),
    ]  # fmt: skip
    assert [row.parameters for row in found.rows] == [0, 96, 0, 0, 66]
    assert found.multiply_adds == 8 * products([2, 32, 2])
    assert found.output_bytes == 8 * (32 + 32 + 2) * 4
    assert found.parameter_bytes == 162 * 4


def test_shared_and_frozen_parameters_count_once():
    shared = nn.Linear(4, 4)
    shared.bias.requires_grad_(False)
    found = summary(nn.Sequential(shared, shared), (1, 4))
    assert (found.parameters, found.trainable) == (20, 16)
    assert [row.parameters for row in found.rows] == [0, 20, 0]
    assert found.multiply_adds == 32
    assert "16 trainable" in repr(found)


def test_nothing_changes():
    model = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5)).train()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    hooks, state = len(model[0]._forward_hooks), tp.get_rng_state()
    summary(model, (8, 4))
    assert all(tp.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert tp.equal(state, tp.get_rng_state())
    assert len(model[0]._forward_hooks) == hooks
    assert model.training
    assert all(p.device.type == "cpu" for p in model.parameters())


def test_hooks_go_when_forward_fails():
    model = nn.Linear(3, 4)
    with pytest.raises(RuntimeError):
        summary(model, (5, 7))
    assert not model._forward_hooks
    assert not model._forward_pre_hooks


@pytest.mark.slow
def test_a_model_that_fits_no_memory():
    with tp.device("meta"):
        model = nn.Linear(10**6, 10**6)
    assert summary(model, (1, 10**6)).multiply_adds == 10**12


def test_inputs_of_every_spelling():
    class Two(nn.Module):
        def forward(self, pair, *, scale):
            return {"sum": pair["a"] * scale + pair["b"], "count": 2}

    a = tp.ones(2, 3)
    found = summary(Two(), {"a": a, "b": a}, scale=tp.ones(3, dtype=tp.float64))
    assert found.rows[0].shapes == ((2, 3),)
    assert summary(nn.Embedding(7, 3), (4,), dtype=tp.int64).rows[0].shapes == ((4, 3),)
    assert summary(nn.Linear(3, 1), [4, 3]).rows[0].shapes == ((4, 1),)


@pytest.mark.filterwarnings("ignore:Lazy modules")
def test_lazy_parameters_are_refused():
    with pytest.raises(ValueError, match=r"'weight' is not known yet; call the model once"):
        summary(nn.LazyLinear(3), (2, 3))


def test_tables():
    found = summary(nn.Sequential(nn.Linear(1000, 1000)), (1, 1000))
    text = repr(found)
    assert "0 Linear [1, 1000] 1,001,000 1,000,000" in " ".join(text.split())
    assert len({len(line) for line in text.splitlines()[:2]}) == 1
    page = found._repr_html_()
    assert page.count("<tr>") == 3
    assert "1,001,000" in page


# Within its recurrent kernels torch does not count.
@pytest.mark.parametrize("name", [name for name in LAYERS if name not in RECURRENT])
def test_counts_are_those_of_torch(name):
    torch = pytest.importorskip("torch", reason="torch is what the counts are compared with")
    from torch.utils.flop_counter import FlopCounterMode

    layer, shape, _ = LAYERS[name]
    options = {"in_channels", "out_channels", "kernel_size", "stride", "padding", "groups"}
    kind = type(layer).__name__
    if kind == "Linear":
        other = torch.nn.Linear(layer.in_features, layer.out_features, layer.bias is not None)
    elif kind == "BatchNorm2d":
        other = torch.nn.BatchNorm2d(layer.num_features)
    else:
        other = getattr(torch.nn, kind)(**{name: getattr(layer, name) for name in options})
    with FlopCounterMode(display=False) as counter:
        other(torch.zeros(shape))
    assert 2 * summary(layer, shape).multiply_adds == counter.get_total_flops()
