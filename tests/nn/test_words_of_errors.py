"""What modules and losses say of arguments that do not fit, in torch's words."""

import re

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="the words are torch's")


def weighted(loss, dtype):
    return lambda L: getattr(L.nn.functional, loss)(
        L.zeros(2, 3), L.tensor([0, 1]), weight=L.ones(3, dtype=getattr(L, dtype))
    )


def resized(*size):
    return lambda L: L.nn.functional.interpolate(L.zeros(1, 1, 4, 4), size=size)


def of_rank(layer, rank, *args):
    return lambda L: getattr(L.nn, layer)(*args)(L.ones((3,) * rank))


# Of windows of one, two and three dimensions, those whose words are torch's at every rank.
RANKS = {
    f"{layer}{count}d-{rank}": of_rank(f"{layer}{count}d", rank, *args)
    for layer, args, counts in [
        ("MaxPool", (2,), (1, 2, 3)),
        ("AvgPool", (2,), (1, 3)),
        ("AdaptiveAvgPool", (2,), (1,)),
        ("AdaptiveMaxPool", (2,), (1, 2, 3)),
        ("ReflectionPad", (1,), (1, 2, 3)),
        ("ReplicationPad", (1,), (1, 2, 3)),
        ("CircularPad", (1,), (1, 2, 3)),
        ("Conv", (3, 2, 1), (1, 2, 3)),
        ("BatchNorm", (3,), (1, 2, 3)),
        ("InstanceNorm", (3,), (1, 2, 3)),
    ]
    for count in counts
    for rank in range(7)
    if rank not in (count + 1, count + 2)
}

#: Matrices and sizes, inputs and targets, … that do not belong together.
PAIRS = {
    **{
        f"affine_grid-{size}": lambda L, size=size: L.nn.functional.affine_grid(
            L.zeros(2, len(size) - 2, len(size) - 1), size, align_corners=False
        )
        for size in [(1, 1, 2, 2), (3, 1, 2, 2), (1, 1, 2, 2, 2), (4, 1, 2, 2, 2)]
    },
    **{
        f"bilinear-{one}-{other}": lambda L, one=one, other=other: L.nn.functional.bilinear(
            L.ones(*one, 2), L.ones(*other, 3), L.ones(5, 2, 3)
        ).sum()
        for one, other in [
            ((4,), ()), ((), (4,)), ((4,), (1,)), ((1, 4), (4,)), ((2, 1), (2, 3)), ((2, 3), (2, 3)),
        ]
    },
    **{
        f"soft_margin_loss-{shape}-{target}": lambda L, shape=shape, target=target: (
            L.nn.functional.soft_margin_loss(L.ones(shape), L.ones(target))
        )
        for shape, target in [
            ((), (4,)), ((4,), (3, 4)), ((4,), (4, 1)), ((1, 4), (3, 1)), ((4, 3), (3,)), ((4, 3), ()),
        ]
    },
    **{
        f"cosine_similarity-{one}-{other}": lambda L, one=one, other=other: (
            L.nn.functional.cosine_similarity(L.ones(one), L.ones(other), dim=0).sum()
        )
        for one, other in [((), (0, 3)), ((0, 3), ()), ((1, 3), (0, 3)), ((2, 3), (0, 3)), ((), (4, 3))]
    },
    **{
        f"multilabel_margin_loss-{rank}": lambda L, rank=rank: L.nn.functional.multilabel_margin_loss(
            L.ones((2,) * rank), L.zeros((2,) * rank, dtype=L.int64)
        )
        for rank in (1, 2, 3, 4)
    },
    **{
        f"circular-{size}": lambda L, size=size: L.nn.functional.pad(
            L.ones(2, 3, 5), size, mode="circular"
        ).sum()
        for size in [(-5, 0), (0, -5), (-3, -2), (-6, 0), (0, -6), (-4, 1)]
    },
    "multilabel_soft_margin_loss": lambda L: L.nn.functional.multilabel_soft_margin_loss(
        L.tensor(1.0), L.tensor(1.0)
    ),
    **{
        f"linear-{shape}-{weight}": lambda L, shape=shape, weight=weight: L.nn.functional.linear(
            L.ones(shape), L.ones(weight)
        ).sum()
        for shape, weight in [((), (1, 1)), ((1,), ()), ((), ()), ((), (1,)), ((2, 3), (3,))]
    },
    **{
        f"fractional_max_pool2d-{kernel}": lambda L, kernel=kernel: (
            L.nn.functional.fractional_max_pool2d(L.ones(1, 1, 7, 7), kernel, output_size=(1, 7))
        )
        for kernel in [(2, 8), (8, 2), 8, 2]
    },
    **{
        f"MultiheadAttention-{'-'.join(map(str, ranks))}": lambda L, ranks=ranks: (
            L.nn.MultiheadAttention(4, 2)(
                *(L.ones((4,) * rank) for rank in ranks[:3]),
                key_padding_mask=L.ones((4,) * ranks[3]).bool() if ranks[3] else None,
                attn_mask=L.ones((4,) * ranks[4]) if ranks[4] else None,
            )[0].sum().detach() * 0
        )
        for ranks in [
            (3, 2, 3, 0, 0), (3, 3, 2, 0, 0), (2, 2, 3, 0, 0), (2, 3, 3, 0, 0), (3, 3, 3, 1, 0),
            (2, 2, 2, 2, 0), (3, 3, 3, 0, 1), (3, 3, 3, 0, 4), (2, 2, 2, 0, 1), (2, 2, 2, 0, 4),
            (1, 1, 1, 0, 0), (3, 3, 3, 0, 2),
        ]
    },
    **{
        f"pack-{shape}-{lengths}": lambda L, shape=shape, lengths=lengths: (
            L.nn.utils.rnn.pack_padded_sequence(L.ones(shape), lengths).data.sum()
        )
        for shape, lengths in [((0, 0), []), ((0, 1, 10), [1]), ((3, 2, 0), [3, 2]), ((3, 2, 4), [3])]
    },
    **{
        f"conv_transpose{count}d-{bias}-{groups}": lambda L, count=count, bias=bias, groups=groups: getattr(
            L.nn.functional, f"conv_transpose{count}d"
        )(L.ones(2, 4, *[3] * count), L.ones(4, 1, *[2] * count), L.ones(bias), groups=groups).sum()
        for count in (1, 2, 3)
        for bias, groups in [((), 1), ((3,), 1), ((1,), 2), ((1, 2), 2), ((2,), 2), ((1,), 1)]
    },
    **{f"interpolate-{size}": resized(*size) for size in [(2.0, 2.0), (2, 2.0), ("2", 2)]},
    "pack_sequence": lambda L: L.nn.utils.rnn.pack_sequence([]),
    "pad_sequence": lambda L: L.nn.utils.rnn.pad_sequence([]),
    "Embedding": lambda L: L.nn.Embedding(3, 2, padding_idx=4),
    "EmbeddingBag": lambda L: L.nn.EmbeddingBag(3, 2, padding_idx=-4),
}  # fmt: skip

CASES = {
    **RANKS,
    **PAIRS,
    **{
        f"{loss}-{dtype}": weighted(loss, dtype)
        for loss in ("nll_loss", "cross_entropy", "multi_margin_loss")
        for dtype in ("float64", "float16", "int64", "float32")
    },
    "cross_entropy-target": lambda L: L.nn.functional.cross_entropy(L.zeros(2, 3), L.zeros(2)),
    **{
        f"{loss}-{shape}-{target}": lambda L, loss=loss, shape=shape, target=target: getattr(
            L.nn.functional, loss
        )(L.zeros(shape), L.zeros(target, dtype=L.int64))
        for loss in ("nll_loss", "cross_entropy")
        for shape, target in [
            ((5, 3), (5, 2)),
            ((5, 3), (5, 1)),
            ((3,), (2,)),
            ((3,), (1, 1)),
            ((2, 3, 4, 4), (2, 4)),
            ((2, 3, 4, 4), (2, 1, 4, 4)),
            ((2, 3, 4), (2, 5)),
        ]
    },
    "multi_margin_loss-target": lambda L: L.nn.functional.multi_margin_loss(
        L.zeros(5, 4), L.tensor([1, 2, 3])
    ),
    "embedding": lambda L: L.nn.Embedding(3, 2)(L.zeros(2)),
    "LSTM": lambda L: L.nn.LSTM(3, 4)(L.zeros(2, 3).double()),
    "LSTMCell": lambda L: L.nn.LSTMCell(3, 4)(L.zeros(2, 3), (L.zeros(2, 4), L.zeros(1, 1, 2, 4))),
    "GRUCell": lambda L: L.nn.GRUCell(3, 4)(L.zeros(2, 3), L.zeros(1, 1, 2, 4)),
    "fold": lambda L: L.nn.functional.fold(L.zeros(1, 12, 12), (4, 5), 2, dilation=8),
    "fractional_max_pool2d": lambda L: L.nn.functional.fractional_max_pool2d(
        L.zeros(1, 1, 4, 4), 2, output_ratio=(0.5, 0.5, 0.5)
    ),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_as_torch(case):
    try:
        wanted = case(torch)
    except Exception as error:
        words = re.sub(r"\btorch\.", "tensorplug.", str(error).splitlines()[0])
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


CONVERSIONS = {
    "device, bool": lambda L: (L.device("cpu"), True),
    "None, bool": lambda L: (None, True),
    "device, dtype, bool": lambda L: (L.device("cpu"), L.float64, True),
    "device, None, bool": lambda L: ("cpu", None, True),
    "dtype, bool": lambda L: (L.float64, True),
    "dtype, bool, bool": lambda L: (L.float64, True, False),
    "dtype, int": lambda L: (L.float64, 1),
    "dtype, device": lambda L: (L.float64, L.device("cpu")),
    "dtype, dtype": lambda L: (L.float64, L.float32),
    "Tensor, bool": lambda L: (L.zeros(1).double(), True),
    "Tensor, four": lambda L: (L.zeros(1), True, False, 1),
    "device, Tensor": lambda L: (L.device("cpu"), L.tensor(3.0)),
    "None, dtype": lambda L: (None, L.float64),
    "list": lambda L: ([],),
    "int64": lambda L: (L.int64,),
}


@pytest.mark.parametrize("arguments", CONVERSIONS.values(), ids=CONVERSIONS)
def test_arguments_of_a_conversion_of_modules(arguments):
    results = []
    for L in (torch, tp):
        try:
            results.append(str(L.nn.Linear(2, 2).to(*arguments(L)).weight.dtype).split(".")[1])
        except Exception as error:
            results.append(type(error))
    assert results[0] == results[1]


def test_sizes_are_no_floating_point_tensors():
    for L in (torch, tp):
        with pytest.raises(TypeError):
            L.nn.functional.interpolate(L.zeros(1, 1, 4, 4), size=(L.tensor(2.0), L.tensor(2.0)))
    image = tp.nn.functional.interpolate(tp.zeros(1, 1, 4, 4), size=(tp.tensor(2), tp.tensor(3)))
    assert image.shape == (1, 1, 2, 3)


@pytest.mark.parametrize(
    ("kernel", "extent"), [((8, 2, 2), "time"), ((2, 8, 2), "height"), (8, "time")]
)
def test_windows_larger_than_a_volume(kernel, extent):
    for L in (torch, tp):
        with pytest.raises(
            RuntimeError, match=f"pool {extent} 8 too large relative to input {extent} 7"
        ):
            L.nn.functional.fractional_max_pool3d(L.ones(1, 1, 7, 7, 7), kernel, output_size=2)


@pytest.mark.parametrize("kind", ["dtype", "shape"])
def test_an_inverse_of_a_second_parametrization(kind):
    for L in (torch, tp):

        class Changing(L.nn.Module):
            def forward(self, x):
                return x

            def right_inverse(self, x):
                return x.double() if kind == "dtype" else x[:1]

        layer = L.nn.Linear(3, 4)
        parametrize = L.nn.utils.parametrize
        parametrize.register_parametrization(layer, "weight", L.nn.Identity())
        words = f"returned by parametrization.right_inverse must have the same {kind} as"
        with pytest.raises(ValueError, match=words):
            parametrize.register_parametrization(layer, "weight", Changing())
        assert len(layer.parametrizations.weight) == 1


@pytest.mark.parametrize("size", [(2,), [2], (2, 2), (2, 2, 2), (2, 2, 2, 2)])
@pytest.mark.parametrize("kind", ["avg", "max"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_as_many_sizes_as_dimensions_are_pooled_to(count, kind, size):
    shapes = []
    for L in (torch, tp):
        pool = getattr(L.nn, f"Adaptive{kind.title()}Pool{count}d")(size)
        try:
            shapes.append(tuple(pool(L.ones(2, 3, *[7] * count)).shape))
        except (RuntimeError, ValueError):
            shapes.append(None)
    assert shapes[1] == shapes[0]


@pytest.mark.parametrize("shape", [(), (1,), (2,), (6,), (3, 3), (1, 3)])
@pytest.mark.parametrize("name", ["running_mean", "running_var", "weight", "bias"])
def test_instance_norm_has_one_element_per_channel_and_writes_nothing_else(name, shape):
    for L in (torch, tp):
        options = {"running_mean": L.ones(3), "running_var": L.ones(3), name: L.ones(shape)}
        with pytest.raises(RuntimeError):
            L.nn.functional.instance_norm(L.rand(4, 3, 5), **options)
        assert all((value == 1).all() for value in options.values())
