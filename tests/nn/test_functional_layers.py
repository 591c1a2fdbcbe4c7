"""Linear maps, embeddings, convolutions, normalisation and dropout: values and gradients as torch's."""

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F


def randn(*shape, grad=True):
    import torch

    return torch.randn(*shape, dtype=torch.float64, requires_grad=grad)


@pytest.mark.parametrize("shape", [(3,), (5, 3), (2, 5, 3), (0, 3), (2, 0, 3)])
@pytest.mark.parametrize("bias", [True, False])
def test_linear(compare, shape, bias):
    compare.functional("linear", randn(*shape), randn(4, 3), randn(4) if bias else None)
    compare.functional("linear", randn(*shape), randn(3))


def test_bilinear(compare):
    compare.functional("bilinear", randn(2, 5, 3), randn(2, 5, 4), randn(6, 3, 4), randn(6))
    compare.functional("bilinear", randn(5, 3), randn(5, 4), randn(6, 3, 4))


@pytest.mark.parametrize("padding", [None, 1, -1])
@pytest.mark.parametrize("by_frequency", [False, True])
def test_embedding(compare, padding, by_frequency):
    import torch

    index = torch.tensor([[1, 2, 0], [2, 5, 2]])
    compare.functional("embedding", index, randn(6, 3), padding, scale_grad_by_freq=by_frequency)
    compare.functional("embedding", index.int(), randn(6, 3))
    compare.functional("embedding", torch.tensor(3), randn(6, 3))
    compare.functional("embedding", index[:0], randn(6, 3))


def test_embedding_limits_norms_in_place():
    weight = tp.tensor([[3.0, 4.0], [30.0, 40.0], [0.3, 0.4]])
    rows = F.embedding(tp.tensor([0, 2, 0]), weight, max_norm=1.0)
    assert weight.tolist()[1] == [30.0, 40.0]
    assert rows.norm(dim=1).tolist() == pytest.approx([1.0, 0.5, 1.0], rel=1e-5)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_bag(compare, mode, padding):
    import torch

    index = torch.tensor([1, 2, 0, 4, 5, 1])
    offsets = torch.tensor([0, 3, 3, 5])
    options = {"mode": mode, "padding_idx": padding}
    compare.functional("embedding_bag", index, randn(6, 3), offsets, **options)
    compare.functional("embedding_bag", index.reshape(2, 3), randn(6, 3), **options)
    ends = torch.tensor([0, 3, 3, 6])
    compare.functional(
        "embedding_bag", index, randn(6, 3), ends, include_last_offset=True, **options
    )
    if mode == "sum":
        compare.functional(
            "embedding_bag", index, randn(6, 3), offsets, per_sample_weights=randn(6), **options
        )


@pytest.mark.parametrize("ends", [[0, 3, 3], [0, 2, 2, 3], [0, 1, 2], [0, 0, 4], [0, 6]])
@pytest.mark.parametrize("padding", [None, 0, 5])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_of_a_last_offset_before_the_end(compare, mode, padding, ends):
    import torch

    options = {"mode": mode, "padding_idx": padding, "include_last_offset": True}

    def cut(
        index, weight, ends
    ):  # torch's own kernels end the last bag here or there, by dtype and mode
        return torch.nn.functional.embedding_bag(index[: ends[-1]], weight, ends, **options)

    def ours(index, weight, ends):
        return tp.nn.functional.embedding_bag(index, weight, ends, **options)

    compare(ours, cut, torch.tensor([1, 2, 0, 4, 5, 1]), randn(6, 3), torch.tensor(ends))


@pytest.mark.parametrize("padding", [None, 0])
def test_embedding_bag_of_equal_maxima(compare, padding):
    import torch

    index, weight = torch.tensor([1, 2, 0, 4, 5, 1, 3]), torch.ones(6, 3, dtype=torch.float64)
    weight[4, 1], weight[3, 2] = -float("inf"), 2.0
    for ends in ([0, 3, 3, 5], [0], [0, 1, 2, 3]):
        compare.functional(
            "embedding_bag", index, weight, torch.tensor(ends), mode="max", padding_idx=padding
        )
    compare.functional("embedding_bag", index[:6].reshape(2, 3), weight, mode="max")


@pytest.mark.parametrize("wrong", [-1, 6])
@pytest.mark.parametrize("padding", [None, 1])
@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag_refuses_rows_that_are_not_there(mode, padding, wrong):
    for lib in (tp, pytest.importorskip("torch")):
        with pytest.raises(RuntimeError, match=f"{wrong}"):
            lib.nn.functional.embedding_bag(
                lib.tensor([0, wrong]),
                lib.ones(6, 2),
                lib.tensor([0]),
                mode=mode,
                padding_idx=padding,
            )


def test_embedding_bag_refuses_other_options():
    for lib in (tp, pytest.importorskip("torch")):
        bag = lib.nn.functional.embedding_bag
        where = lib.tensor([0, 1]), lib.ones(6, 2), lib.tensor([0])
        with pytest.raises(RuntimeError, match="within the number of embeddings"):
            bag(*where, padding_idx=-7)
        with pytest.raises(RuntimeError, match="have the same type as"):
            bag(*where, mode="sum", per_sample_weights=lib.ones(2, dtype=lib.float64))


def test_one_hot(compare):
    import torch

    index = torch.tensor([[0, 2], [1, 1]])
    compare.functional("one_hot", index)
    compare.functional("one_hot", index, 5)
    compare.functional("one_hot", index[:0], 5)
    compare.functional("one_hot", torch.tensor(2))


SIZES = {1: (8,), 2: (6, 7), 3: (5, 4, 5)}


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "padding", "dilation", "groups"),
    [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1), (3, 1, 1, 4), (1, "same", 1, 1), (1, "valid", 1, 2)],
)
def test_convolution(compare, count, stride, padding, dilation, groups):
    size = SIZES[count]
    kernel = (3, 2, 2)[:count]
    weight = randn(8, 4 // groups, *kernel)
    compare.functional(
        f"conv{count}d", randn(2, 4, *size), weight, randn(8), stride, padding, dilation, groups
    )
    compare.functional(
        f"conv{count}d", randn(4, *size), weight, None, stride, padding, dilation, groups
    )


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    ("stride", "padding", "extra", "groups", "dilation"),
    [
        (1, 0, 0, 1, 1),
        (2, 1, 1, 2, 1),
        (1, 2, 0, 1, 2),
        (3, 1, 2, 4, 1),
        # what is added at the end is as wide as a step or wider
        (1, 0, 1, 2, 2),
        (1, 3, 2, 4, 3),
        (2, 1, 3, 1, 4),
    ],
)
def test_transposed_convolution(compare, count, stride, padding, extra, groups, dilation):
    weight = randn(4, 8 // groups, *(3, 3, 3)[:count])
    options = stride, padding, extra, groups, dilation
    compare.functional(
        f"conv_transpose{count}d", randn(2, 4, *SIZES[count]), weight, randn(8), *options
    )
    compare.functional(f"conv_transpose{count}d", randn(4, *SIZES[count]), weight, None, *options)


def test_convolution_of_time_first(compare):
    compare.functional("conv_tbc", randn(7, 2, 3), randn(3, 3, 4), randn(4), 1)


def test_empty_batch(compare):
    compare.functional("conv2d", randn(0, 4, 6, 7), randn(8, 4, 3, 3), randn(8))


@pytest.mark.parametrize("shape", [(6, 4), (3, 4, 5), (2, 4, 3, 3), (2, 4, 2, 2, 2)])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("affine", [True, False])
def test_batch_norm(compare, shape, training, affine):
    import torch

    mean, var = randn(4, grad=False), torch.rand(4, dtype=torch.float64) + 0.5
    weight, bias = (randn(4), randn(4)) if affine else (None, None)
    ours = tp.tensor(mean.tolist(), dtype=tp.float64), tp.tensor(var.tolist(), dtype=tp.float64)

    def call(function, statistics):
        def apply(input, weight, bias):
            return function(
                input, *statistics, weight, bias, training=training, momentum=0.3, eps=1e-3
            )

        return apply

    compare(
        call(F.batch_norm, ours),
        call(torch.nn.functional.batch_norm, (mean, var)),
        randn(*shape), weight, bias,
    )  # fmt: skip
    assert ours[0].tolist() == pytest.approx(mean.tolist(), rel=1e-10)
    assert ours[1].tolist() == pytest.approx(var.tolist(), rel=1e-10)


@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_of_nothing(training):
    """Also without channels, where numbers in one dimension are refused."""
    statistics = None if training else tp.ones(1)
    for shape in ((0,), (0, 1), (2, 1, 0)):
        x = tp.zeros(shape, requires_grad=True)
        found = F.batch_norm(x, statistics, statistics, training=training)
        found.sum().backward()
        assert found.shape == x.grad.shape == shape
        assert found is not x
    with pytest.raises(ValueError, match="at least 2D"):
        F.batch_norm(tp.zeros(3), statistics, statistics, training=training)


@pytest.mark.parametrize("last", [(4,), (3, 4), (2, 3, 4)])
def test_layer_and_rms_norm(compare, last):
    compare.functional("layer_norm", randn(2, 3, 4), last, randn(*last), randn(*last))
    compare.functional("layer_norm", randn(2, 3, 4), last, None, None, 1e-2)
    compare.functional("rms_norm", randn(2, 3, 4), last, randn(*last))
    compare.functional("rms_norm", randn(2, 3, 4), last, None, 1e-2)


@pytest.mark.parametrize("shape", [(3, 6), (3, 6, 4), (2, 6, 2, 3)])
def test_group_norm(compare, shape):
    for groups in (1, 2, 3) if len(shape) > 2 else (1, 2):
        compare.functional("group_norm", randn(*shape), groups, randn(6), randn(6))
        compare.functional("group_norm", randn(*shape), groups)


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 4, 3, 3)])
def test_instance_norm(compare, shape):
    compare.functional("instance_norm", randn(*shape), None, None, randn(4), randn(4))
    compare.functional("instance_norm", randn(*shape), eps=1e-2)


@pytest.mark.parametrize("shape", [(2, 5, 4), (2, 5, 3, 3), (2, 5, 2, 2, 2)])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_local_response_norm(compare, shape, size):
    compare.functional("local_response_norm", randn(*shape), size, 1e-2, 0.6, 1.5)


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0])
def test_normalize(compare, dim, p):
    compare.functional("normalize", randn(3, 4, 2), p, dim)


def test_dropout_keeps_the_mean():
    tp.manual_seed(0)
    input = tp.ones(4000, dtype=tp.float64, requires_grad=True)
    output = F.dropout(input, 0.25)
    assert sorted(set(output.tolist())) == [0.0, pytest.approx(4 / 3)]
    assert output.mean().item() == pytest.approx(1.0, abs=0.05)
    output.sum().backward()
    assert input.grad.tolist() == output.tolist()
    assert F.dropout(input, 0.25, training=False) is input
    assert F.dropout(input, 1.0).abs().sum().item() == 0.0


@pytest.mark.parametrize("count", [1, 2, 3])
def test_feature_dropout_drops_whole_channels(count):
    tp.manual_seed(0)
    input = tp.ones(5, 7, *[3] * count)
    output = getattr(F, f"dropout{count}d")(input, 0.5).flatten(2)
    assert (output.amin(2) == output.amax(2)).all()
    assert 0 < (output[:, :, 0] == 0).sum().item() < 35
    refused = pytest.raises(RuntimeError, match="Expected")
    if count == 3:  # torch takes it, with a warning
        refused = pytest.warns(UserWarning, match="Received a 1-D input")
    with refused:
        getattr(F, f"dropout{count}d")(tp.ones(3))


def test_alpha_dropout_keeps_mean_and_variance():
    tp.manual_seed(0)
    input = tp.randn(20000)
    output = F.alpha_dropout(input, 0.3, training=True)
    assert output.mean().item() == pytest.approx(0.0, abs=0.05)
    assert output.std().item() == pytest.approx(1.0, abs=0.05)
    channels = F.feature_alpha_dropout(tp.ones(8, 6, 4), 0.5, training=True)
    assert (channels.amin(2) == channels.amax(2)).all()


def test_dropout_in_place():
    tp.manual_seed(0)
    input = tp.ones(100)
    assert F.dropout(input, 0.5, inplace=True) is input
    assert 0 < (input == 0).sum().item() < 100


def test_known_values():
    input = tp.tensor([[1.0, 2.0, 3.0]], dtype=tp.float64)
    assert F.layer_norm(input, (3,), eps=0.0).tolist()[0] == pytest.approx(
        [-(1.5**0.5), 0, 1.5**0.5]
    )
    assert F.conv1d(tp.ones(1, 1, 3), tp.ones(1, 1, 2)).flatten().tolist() == [2.0, 2.0]
    assert F.normalize(tp.tensor([[3.0, 4.0]]), dim=1).tolist()[0] == pytest.approx([0.6, 0.8])


D = tp.float64


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (F.linear, [(5, 3), (4, 3), (4,)]),
        (lambda x, w, b: F.conv2d(x, w, b, 2, 1), [(2, 2, 4, 4), (3, 2, 3, 3), (3,)]),
        (lambda x, w: F.conv1d(x, w, dilation=2, groups=2), [(1, 2, 6), (2, 1, 2)]),
        (lambda x, w: F.conv_transpose2d(x, w, stride=2), [(1, 2, 3, 3), (2, 1, 2, 2)]),
        (lambda x: F.layer_norm(x, (4,)), [(3, 4)]),
        (lambda x: F.group_norm(x, 2), [(2, 4, 3)]),
        (lambda x: F.batch_norm(x, None, None, training=True), [(4, 2)]),
        (lambda w: F.embedding(tp.tensor([0, 2, 2]), w, 1), [(3, 2)]),
    ],
)
def test_finite_differences(function, shapes):
    tp.manual_seed(0)
    inputs = tuple(tp.randn(*shape, dtype=D).requires_grad_() for shape in shapes)
    assert tp.autograd.gradcheck(function, inputs)
    assert tp.autograd.gradgradcheck(function, inputs)


def test_complex_convolution_has_right_derivatives():
    tp.manual_seed(0)
    x = tp.randn(1, 2, 4, dtype=tp.complex128).requires_grad_()
    w = tp.randn(3, 2, 2, dtype=tp.complex128).requires_grad_()
    assert tp.autograd.gradcheck(lambda x, w: F.conv1d(x, w, stride=2), (x, w))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.linear(tp.ones(2, 3), tp.ones(4, 5)), RuntimeError),
        (lambda: F.embedding(tp.tensor([1.0]), tp.ones(3, 2)), RuntimeError),
        (lambda: F.embedding(tp.tensor([3]), tp.ones(3, 2)), IndexError),
        (lambda: F.embedding(tp.tensor([1]), tp.ones(3)), RuntimeError),
        (lambda: F.embedding(tp.tensor([1]), tp.ones(3, 2), padding_idx=3), AssertionError),
        (lambda: F.embedding_bag(tp.tensor([1]), tp.ones(3, 2)), ValueError),
        (lambda: F.embedding_bag(tp.tensor([[1]]), tp.ones(3, 2), mode="x"), ValueError),
        (
            lambda: F.embedding_bag(
                tp.tensor([[1]]), tp.ones(3, 2), per_sample_weights=tp.ones(1, 1)
            ),
            NotImplementedError,
        ),
        (lambda: F.one_hot(tp.tensor([1.0])), RuntimeError),
        (lambda: F.one_hot(tp.tensor([-1])), RuntimeError),
        (lambda: F.one_hot(tp.tensor([3]), 3), RuntimeError),
        (lambda: F.conv2d(tp.ones(1, 3, 4, 4), tp.ones(2, 2, 3, 3)), RuntimeError),
        (lambda: F.conv2d(tp.ones(3, 4), tp.ones(2, 2, 3, 3)), RuntimeError),
        (lambda: F.conv2d(tp.ones(1, 2, 4, 4), tp.ones(2, 2, 5, 5)), RuntimeError),
        (lambda: F.conv2d(tp.ones(1, 2, 4, 4), tp.ones(2, 2, 3, 3), stride=0), RuntimeError),
        (lambda: F.conv2d(tp.ones(1, 2, 4, 4), tp.ones(2, 2, 3, 3), tp.ones(3)), RuntimeError),
        (lambda: F.conv2d(tp.ones(1, 2, 4, 4), tp.ones(2, 2, 3, 3).double()), RuntimeError),
        (
            lambda: F.conv2d(tp.ones(1, 2, 4, 4), tp.ones(2, 2, 3, 3), stride=2, padding="same"),
            RuntimeError,
        ),
        (lambda: F.conv2d([1.0], tp.ones(2, 2, 3, 3)), TypeError),
        (
            lambda: F.conv_transpose1d(tp.ones(1, 2, 4), tp.ones(2, 2, 3), output_padding=1),
            RuntimeError,
        ),
        (lambda: F.batch_norm(tp.ones(1, 3), None, None, training=True), ValueError),
        (lambda: F.batch_norm(tp.ones(2, 3), tp.ones(4), tp.ones(4)), RuntimeError),
        (lambda: F.layer_norm(tp.ones(2, 3), (4,)), RuntimeError),
        (lambda: F.group_norm(tp.ones(2, 3), 2), RuntimeError),
        (lambda: F.instance_norm(tp.ones(2, 3, 1)), ValueError),
        (lambda: F.local_response_norm(tp.ones(2, 3), 2), ValueError),
        (lambda: F.dropout(tp.ones(2), 1.5), ValueError),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()


@pytest.mark.parametrize("row", [-1, 3])
def test_rows_that_a_table_does_not_have(row):
    with pytest.raises(IndexError, match="index out of range in self"):
        F.embedding(tp.tensor([0, row]), tp.ones(3, 2))


@pytest.mark.parametrize("max_norm", [None, 1.0])
def test_sparse_gradients_are_asked_for_by_tables_that_have_some(max_norm):
    """A call with a table without a gradient is remembered; the next one's table may have one."""
    index, bags = tp.tensor([[0, 2], [1, 2]]), tp.tensor([0, 2])
    for _ in range(3):
        for grad in (False, True):
            table = tp.ones(4, 3, requires_grad=grad)
            rows = F.embedding(index, table, max_norm=max_norm, sparse=True)
            sums = F.embedding_bag(
                index.reshape(-1), table, bags, max_norm=max_norm, mode="sum", sparse=True
            )
            same = F.embedding(index, table.detach().clone(), max_norm=max_norm)
            assert tp.equal(rows, same)
            assert tp.allclose(sums, same.sum(1))
            assert rows.requires_grad is grad
            assert sums.requires_grad is grad
            if grad:
                for result in (rows, sums):
                    (gradient,) = tp.autograd.grad(result.sum(), table)
                    assert gradient.is_sparse
