"""Attention, transformers, recurrent networks, packed sequences: as torch's, with the same parameters."""

import math
import pickle

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug import nn
from tensorplug.nn.utils import rnn


def randn(*shape, grad=True):
    import torch

    return torch.randn(*shape, dtype=torch.float64, requires_grad=grad)


@pytest.mark.parametrize(
    "options", [{}, {"is_causal": True}, {"scale": 0.3}, {"mask": "bool"}, {"mask": "float"}]
)
@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_scaled_dot_product_attention(compare, options, leading):
    import torch

    options = dict(options)
    kind = options.pop("mask", None)
    if kind == "bool":
        mask = torch.rand(4, 6) > 0.3
        mask[0] = False  # a row that sees nothing gives zeros
        options["attn_mask"] = mask
    elif kind == "float":
        options["attn_mask"] = randn(4, 6, grad=True)
    size = 4 if options.get("is_causal") else 6
    compare.functional(
        "scaled_dot_product_attention", randn(*leading, 4, 5), randn(*leading, size, 5),
        randn(*leading, size, 7), **options,
    )  # fmt: skip


def test_grouped_queries(compare):
    compare.functional(
        "scaled_dot_product_attention", randn(2, 6, 4, 5), randn(2, 3, 4, 5), randn(2, 3, 4, 5),
        enable_gqa=True,
    )  # fmt: skip


def test_attention_by_hand():
    x = tp.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=tp.float64)
    near = 1 / (1 + math.exp(-math.sqrt(0.5)))
    output = F.scaled_dot_product_attention(x, x, x, is_causal=True)
    assert output.tolist()[0] == [1.0, 0.0]
    assert output.tolist()[1] == pytest.approx([1 - near, near])


ATTENTIONS = [
    {},
    {"bias": False},
    {"add_bias_kv": True},
    {"add_zero_attn": True},
    {"kdim": 5, "vdim": 3},
    {"batch_first": True},
]


@pytest.mark.parametrize("options", ATTENTIONS)
@pytest.mark.parametrize("weights", ["average", "all", "none"])
def test_multihead_attention(compare, options, weights):
    import torch

    call = {
        "need_weights": weights != "none",
        "average_attn_weights": weights == "average",
    }
    sizes = 8, options.get("kdim", 8), options.get("vdim", 8)
    shapes = [(4, 2), (6, 2), (6, 2)]
    if options.get("batch_first"):
        shapes = [shape[::-1] for shape in shapes]
    inputs = [randn(*shape, size) for shape, size in zip(shapes, sizes, strict=True)]
    compare.module("MultiheadAttention", ((8, 2), options), *inputs, **call)
    padding = torch.zeros(2, 6, dtype=torch.bool)
    padding[0, 4:] = True
    mask = torch.zeros(4, 6, dtype=torch.bool)
    mask[:, 1] = True
    compare.module(
        "MultiheadAttention",
        ((8, 2), options),
        *inputs,
        key_padding_mask=padding,
        attn_mask=mask,
        **call,
    )
    compare.module(
        "MultiheadAttention",
        ((8, 2), options),
        *inputs,
        attn_mask=randn(4, 4, 6, grad=False),
        **call,
    )
    unbatched = [randn(length, size) for length, size in zip((4, 6, 6), sizes, strict=True)]
    compare.module("MultiheadAttention", ((8, 2), options), *unbatched, **call)


def test_self_attention(compare):
    import torch

    shared = randn(4, 2, 8)

    class Twice:
        def __init__(self, module):
            self.module = module

        def __call__(self, x):
            return self.module(x, x, x)

    theirs = torch.nn.MultiheadAttention(8, 2).double()
    ours = nn.MultiheadAttention(8, 2).double()
    ours.load_state_dict(
        {k: tp.tensor(v.tolist(), dtype=tp.float64) for k, v in theirs.state_dict().items()}
    )
    compare(Twice(ours), Twice(theirs), shared)


@pytest.mark.parametrize(
    "options",
    [{}, {"norm_first": True, "activation": "gelu"}, {"batch_first": True, "bias": False}],
)
def test_transformer_layers(compare, options):
    import torch

    options = {"dropout": 0.0, "dim_feedforward": 16, **options}
    mask = torch.nn.Transformer.generate_square_subsequent_mask(4).double()
    compare.module(
        "TransformerEncoderLayer", ((8, 2), options), randn(4, 4, 8), src_mask=mask, is_causal=True
    )
    compare.module(
        "TransformerDecoderLayer", ((8, 2), options), randn(4, 4, 8), randn(4, 4, 8), tgt_mask=mask
    )


def test_transformer(compare):
    options = {
        "num_encoder_layers": 2, "num_decoder_layers": 1, "dim_feedforward": 12, "dropout": 0.0,
    }  # fmt: skip
    compare.module("Transformer", ((8, 2), options), randn(5, 2, 8), randn(3, 2, 8))
    compare.module("Transformer", ((8, 2), options), randn(5, 8), randn(3, 8))
    ours = nn.Transformer.generate_square_subsequent_mask(3)
    assert ours.tolist() == [[0, -math.inf, -math.inf], [0, 0, -math.inf], [0, 0, 0]]


def test_stacks_copy_their_layer():
    layer = nn.TransformerEncoderLayer(8, 2, 16)
    stack = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)).eval()
    assert stack.layers[0].linear1.weight is not stack.layers[1].linear1.weight
    assert stack(tp.randn(4, 1, 8)).shape == (4, 1, 8)
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16), 2)
    assert len(list(decoder.parameters())) == 2 * len(list(decoder.layers[0].parameters()))


RECURRENT = [
    {},
    {"num_layers": 2, "bias": False},
    {"bidirectional": True},
    {"num_layers": 2, "bidirectional": True, "batch_first": True},
]


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("options", RECURRENT)
def test_recurrent(compare, name, options):
    extras = [{}]
    if name == "LSTM":
        extras.append({"proj_size": 2})
    if name == "RNN":
        extras.append({"nonlinearity": "relu"})
    for extra in extras:
        chosen = {**options, **extra}
        compare.module(name, ((3, 4), chosen), randn(5, 2, 3))
        compare.module(name, ((3, 4), chosen), randn(5, 3))
        n = 5 if chosen.get("batch_first") else 2
        count = chosen.get("num_layers", 1) * (2 if chosen.get("bidirectional") else 1)
        hidden = randn(count, n, chosen.get("proj_size") or 4)
        state = (hidden, randn(count, n, 4)) if name == "LSTM" else hidden
        compare.module(name, ((3, 4), chosen), randn(5, 2, 3), state)


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("options", RECURRENT)
@pytest.mark.parametrize("ordered", [True, False])
def test_recurrent_on_packed_sequences(compare, name, options, ordered):
    import torch

    lengths = [5, 3, 3, 1] if ordered else [3, 5, 1, 3]
    theirs = getattr(torch.nn, name)(3, 4, **options).double()
    ours = getattr(nn, name)(3, 4, **options).double()
    ours.load_state_dict(
        {k: tp.tensor(v.tolist(), dtype=tp.float64) for k, v in theirs.state_dict().items()}
    )

    def run(module, library):
        def call(padded, *state):
            packed = library.pack_padded_sequence(padded, lengths, enforce_sorted=ordered)
            given = state if name == "LSTM" else state[0]
            output, last = module(packed, given if state else None)
            return *library.pad_packed_sequence(output), *(last if name == "LSTM" else [last])

        return call

    count = options.get("num_layers", 1) * (2 if options.get("bidirectional") else 1)
    states = [randn(count, 4, 4) for _ in range(2 if name == "LSTM" else 1)]
    compare(run(ours, rnn), run(theirs, torch.nn.utils.rnn), randn(5, 4, 3), *states)
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        assert a.grad.flatten().tolist() == pytest.approx(
            b.grad.flatten().tolist(), rel=1e-9, abs=1e-12
        )


@pytest.mark.parametrize(
    ("name", "option", "value", "missing"),
    [
        ("LSTM", "bidirectional", True, "weight_ih_l0_reverse"),
        ("GRU", "num_layers", 2, "weight_ih_l1"),
        ("RNN", "bias", True, "bias_ih_l0"),
        ("LSTM", "proj_size", 2, "weight_hr_l0"),
    ],
)
def test_options_that_ask_for_parameters_that_were_not_made(name, option, value, missing):
    module = getattr(nn, name)(3, 4, bias=False)
    setattr(module, option, value)
    with pytest.raises(RuntimeError, match=f"{name}: an option .* no attribute '{missing}'"):
        module(tp.ones(2, 1, 3))
    pickle.loads(pickle.dumps(module))


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("bias", [True, False])
def test_cells(compare, name, bias):
    options = {"bias": bias}
    extras = [{}, {"nonlinearity": "relu"}] if name == "RNNCell" else [{}]
    for extra in extras:
        chosen = ((3, 4), {**options, **extra})
        compare.module(name, chosen, randn(2, 3))
        compare.module(name, chosen, randn(3))
        state = randn(2, 4) if name != "LSTMCell" else (randn(2, 4), randn(2, 4))
        compare.module(name, chosen, randn(2, 3), state)


def test_dropout_between_layers():
    tp.manual_seed(0)
    module = nn.LSTM(3, 4, num_layers=2, dropout=0.5)
    input = tp.randn(5, 2, 3)
    assert (module(input)[0] != module(input)[0]).any()
    module.eval()
    assert (module(input)[0] == module(input)[0]).all()
    with pytest.warns(UserWarning, match="num_layers greater than 1"):
        nn.GRU(3, 4, dropout=0.5)


def test_packing_round_trip(compare):
    import torch

    for lengths, ordered in (([4, 2, 1], True), ([2, 4, 1], False)):
        for batch_first in (True, False):
            shape = (3, 4, 2) if batch_first else (4, 3, 2)

            def pack(library, lengths=lengths, ordered=ordered, batch_first=batch_first):
                def call(padded):
                    packed = library.pack_padded_sequence(
                        padded, lengths, batch_first=batch_first, enforce_sorted=ordered
                    )
                    again = library.pad_packed_sequence(
                        packed, batch_first=batch_first, padding_value=7.0, total_length=6
                    )
                    return packed.data, packed.batch_sizes, *again

                return call

            compare(pack(rnn), pack(torch.nn.utils.rnn), randn(*shape))


def test_pack_sequence():
    sequences = [tp.arange(2.0), tp.arange(4.0), tp.arange(1.0)]
    packed = rnn.pack_sequence(sequences, enforce_sorted=False)
    assert packed.batch_sizes.tolist() == [3, 2, 1, 1]
    assert packed.sorted_indices.tolist() == [1, 0, 2]
    assert [s.tolist() for s in rnn.unpack_sequence(packed)] == [s.tolist() for s in sequences]
    assert packed.double().data.dtype is tp.float64
    assert packed.to("cpu").data.tolist() == packed.data.tolist()


CASTS = ("double", "float", "half", "long", "int", "short", "char", "byte")


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("before", CASTS)
@pytest.mark.parametrize("after", CASTS)
def test_casts_of_packed_sequences(before, after, ordered):
    sequences = [getattr(tp.arange(float(n)), before)() for n in (3, 2, 1)]
    packed = rnn.pack_sequence(sequences, enforce_sorted=ordered)
    cast = getattr(packed, after)()
    assert cast.data.dtype is getattr(sequences[0], after)().dtype
    assert cast.data.tolist() == packed.data.tolist()
    assert (cast is packed) == (before == after)
    assert packed.to("cpu") is packed
    assert packed.cpu() is packed


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: nn.MultiheadAttention(7, 2), AssertionError),
        (lambda: nn.MultiheadAttention(0, 2), ValueError),
        (lambda: nn.MultiheadAttention(4, 2)(*[tp.ones(3)] * 3), AssertionError),
        (lambda: nn.MultiheadAttention(4, 2)(*[tp.ones(3, 1, 6)] * 3), AssertionError),
        (
            lambda: nn.MultiheadAttention(4, 2)(*[tp.ones(3, 4)] * 3, attn_mask=tp.ones(2, 2)),
            RuntimeError,
        ),
        (lambda: nn.MultiheadAttention(4, 2)(*[tp.ones(3, 4)] * 3, is_causal=True), RuntimeError),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="x"), RuntimeError),
        (lambda: nn.Transformer(4, 2)(tp.ones(3, 2, 4), tp.ones(3, 1, 4)), RuntimeError),
        (lambda: nn.Transformer(4, 2, 1, 1, 4)(tp.ones(3, 2, 5), tp.ones(3, 2, 5)), RuntimeError),
        (lambda: nn.LSTM(3, 0), ValueError),
        (lambda: nn.LSTM(3, 4, num_layers=0), ValueError),
        (lambda: nn.LSTM(3, 4, dropout=2), ValueError),
        (lambda: nn.LSTM(3, 4, proj_size=4), ValueError),
        (lambda: nn.GRU(3, 4, proj_size=2), ValueError),
        (lambda: nn.RNN(3, 4, nonlinearity="x"), ValueError),
        (lambda: nn.LSTM(3, 4)(tp.ones(5)), ValueError),
        (lambda: nn.LSTM(3, 4)(tp.ones(5, 2, 4)), RuntimeError),
        (lambda: nn.LSTM(3, 4)(tp.ones(5, 2, 3).double()), ValueError),
        (lambda: nn.GRU(3, 4)(tp.ones(5, 2, 3), tp.ones(1, 3, 4)), RuntimeError),
        (lambda: nn.GRU(3, 4)(tp.ones(5, 2, 3), tp.ones(1, 4)), RuntimeError),
        (lambda: nn.GRUCell(3, 4)(tp.ones(2, 4)), RuntimeError),
        (lambda: nn.GRUCell(3, 4)(tp.ones(2, 3), tp.ones(1, 4)), RuntimeError),
        (lambda: nn.RNNCell(3, 4, nonlinearity="x")(tp.ones(2, 3)), RuntimeError),
        (lambda: rnn.pack_padded_sequence(tp.ones(3, 2), [1, 2]), RuntimeError),
        (lambda: rnn.pack_padded_sequence(tp.ones(3, 2), [2, 0]), RuntimeError),
        (lambda: rnn.pack_padded_sequence(tp.ones(3, 2), [2, 1, 1]), RuntimeError),
        (
            lambda: rnn.pad_packed_sequence(
                rnn.pack_padded_sequence(tp.ones(3, 2), [2, 1]), total_length=1
            ),
            ValueError,
        ),
        (
            lambda: F.scaled_dot_product_attention(
                *[tp.ones(3, 4)] * 3, attn_mask=tp.ones(3, 3), is_causal=True
            ),
            RuntimeError,
        ),
        (lambda: F.scaled_dot_product_attention(*[tp.ones(3)] * 3), RuntimeError),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("activation", ["relu", "gelu", nn.functional.silu, lambda x: x.relu()])
def test_transformers_feed_forward_is_what_hooks_see(activation):
    """The linear map and the activation are one op only where nobody looks at what lies between."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation=activation).eval()
    x = tp.randn(4, 3, 8)
    with tp.no_grad():
        expected = layer(x)
        seen = []
        handle = layer.linear1.register_forward_hook(lambda *args: seen.append(args[2]))
        assert tp.equal(layer(x), expected)
        assert [tuple(found.shape) for found in seen] == [(4, 3, 16)]
        handle.remove()
        layer.linear1.register_forward_pre_hook(lambda module, args: (args[0] * 0,))
        assert not tp.equal(layer(x), expected)


def test_transformers_feed_forward_says_what_does_not_fit():
    layer = nn.TransformerDecoderLayer(8, 2, 16).eval()
    layer.linear1.weight = nn.Parameter(tp.zeros(16, 7))
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        layer(tp.zeros(4, 3, 8), tp.zeros(4, 3, 8))


def test_transformers_feed_forward_under_autocast():
    layer = nn.TransformerEncoderLayer(8, 2, 16).eval()
    x = tp.randn(4, 3, 8)
    expected = layer(x)
    with tp.no_grad(), tp.autocast("cpu"):
        found = layer.linear2(nn.modules.linear.activated(layer.linear1, nn.functional.relu, x))
        assert found.dtype is tp.bfloat16
        assert tp.allclose(layer(x).float(), expected, atol=0.1)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", ["padding", "mask", "additive"])
@pytest.mark.parametrize("dtype", [tp.float32, tp.float64, tp.bfloat16])
def test_rows_with_nothing_to_attend_to(dtype, kind, training):
    """With weights they are NaN, as a softmax of nothing; without them zero, but for the bias."""
    attention = nn.MultiheadAttention(4, 2, batch_first=True, dtype=dtype).train(training)
    nn.init.constant_(attention.out_proj.bias, 0.5)
    x = tp.ones(2, 3, 4, dtype=dtype)
    seen = tp.ones(2, 3, dtype=tp.bool)
    if kind == "padding":
        seen[1] = False
        given, blank = {"key_padding_mask": ~seen}, tp.tensor([[False] * 3, [True] * 3])
    else:
        allowed = tp.ones(3, 3, dtype=tp.bool)
        allowed[2] = False
        mask = (
            ~allowed
            if kind == "mask"
            else tp.zeros(3, 3, dtype=dtype).masked_fill(~allowed, -math.inf)
        )
        given, blank = {"attn_mask": mask}, tp.tensor([[False, False, True]] * 2)
    output, weights = attention(x, x, x, **given)
    assert output.isnan().all(-1).equal(blank)
    assert weights.isnan().all(-1).equal(blank)
    output, weights = attention(x, x, x, need_weights=False, **given)
    assert weights is None
    assert (output[blank] == 0.5).all()
    assert not output.isnan().any()


@pytest.mark.parametrize("shape", [(5, 3), (3, 6), (3, 1), (1, 5), (4, 5)])
@pytest.mark.parametrize("options", [{}, {"add_bias_kv": True}, {"add_zero_attn": True}])
def test_a_padding_mask_of_another_shape_is_refused(shape, options):
    torch = pytest.importorskip("torch")
    x = tp.ones(5, 3, 4)
    for library, given in ((tp, x), (torch, torch.ones(5, 3, 4))):
        attention = library.nn.MultiheadAttention(4, 2, **options)
        mask = library.zeros(shape, dtype=library.bool)
        for need_weights in (True, False):
            with pytest.raises(AssertionError):
                attention(given, given, given, mask, need_weights)
        mask = library.zeros((3, 5), dtype=library.bool)
        assert attention(given, given, given, mask)[0].shape == (5, 3, 4)
