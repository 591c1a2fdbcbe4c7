"""Pooling: values and gradients against torch's, hand-worked values, bad input."""

import itertools

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug.core.dispatch.op_registry import get_op

SIZES = {1: (9,), 2: (7, 8), 3: (5, 6, 5)}


def image(count, leading=(2, 3)):
    import torch

    return torch.randn(*leading, *SIZES[count], dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"),
    [(2, None, 0, 1), (3, 2, 1, 1), (3, 1, 1, 2), (2, 3, 0, 1), (2, (2,), 1, 1)],
)
@pytest.mark.parametrize("ceil_mode", [False, True])
def test_max_pool(compare, count, kernel, stride, padding, dilation, ceil_mode):
    for leading in ((2, 3), (3,)):
        compare.functional(
            f"max_pool{count}d", image(count, leading), kernel, stride, padding, dilation,
            ceil_mode=ceil_mode, return_indices=True,
        )  # fmt: skip


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(2, None, 0), (3, 2, 1), (3, 1, 1), (2, 3, 0)]
)
@pytest.mark.parametrize(("ceil_mode", "include"), [*itertools.product([False, True], repeat=2)])
def test_avg_pool(compare, count, kernel, stride, padding, ceil_mode, include):
    compare.functional(
        f"avg_pool{count}d", image(count), kernel, stride, padding, ceil_mode, include
    )
    if count > 1:
        compare.functional(
            f"avg_pool{count}d", image(count, (3,)), kernel, stride, padding, ceil_mode, include, 5
        )


@pytest.mark.parametrize(
    ("count", "size"),
    [(1, 3), (1, 4), (1, 1), (2, 1), (2, 3), (2, (None, 4)), (2, (7, 2)), (2, (9, 3)), (3, 2),
     (3, (2, None, 5))],
)  # fmt: skip
@pytest.mark.parametrize("sort", ["avg", "max"])
def test_adaptive_pool(compare, count, size, sort):
    for leading in ((2, 3), (3,)):
        compare.functional(f"adaptive_{sort}_pool{count}d", image(count, leading), size)
    if sort == "max":
        compare.functional(f"adaptive_max_pool{count}d", image(count), size, return_indices=True)


def test_adaptive_max_pool_takes_the_first_of_equals(compare):
    import torch

    equal = torch.zeros(1, 1, 5, 5, dtype=torch.float64)
    compare.functional("adaptive_max_pool2d", equal, 3, return_indices=True)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize(("p", "stride"), [(2.0, None), (3.0, 1), (1.0, 2)])
def test_lp_pool(compare, count, p, stride):
    input = image(count).detach().abs().requires_grad_()
    compare.functional(f"lp_pool{count}d", input, p, 2, stride, ceil_mode=True)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("leading", [(2, 3), (3,)])
def test_max_unpool(compare, count, leading):
    import torch

    pool = getattr(torch.nn.functional, f"max_pool{count}d")
    input = image(count, leading).detach()
    values, indices = pool(input, 2, 2, return_indices=True)
    values.requires_grad_()
    compare.functional(f"max_unpool{count}d", values, indices, 2, output_size=input.shape[-count:])
    if len(leading) == 2:
        compare.functional(f"max_unpool{count}d", values, indices, 2, output_size=input.shape)


def test_known_values():
    input = tp.arange(16.0).reshape(1, 1, 4, 4)
    values, indices = F.max_pool2d(input, 2, return_indices=True)
    assert values.flatten().tolist() == [5.0, 7.0, 13.0, 15.0]
    assert indices.flatten().tolist() == [5, 7, 13, 15]
    assert F.avg_pool2d(input, 2).flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert F.adaptive_avg_pool2d(input, 1).item() == 7.5
    assert F.max_unpool2d(values, indices, 2).sum().item() == 40.0


def test_padding_never_wins():
    input = tp.full((1, 1, 3, 3), -7.0)
    assert F.max_pool2d(input, 3, 1, 1).flatten().tolist() == [-7.0] * 9
    integers = tp.full((1, 1, 3, 3), -7, dtype=tp.int64)
    assert F.max_pool2d(integers, 3, 1, 1).flatten().tolist() == [-7] * 9


@pytest.mark.parametrize("name", ["max_pool2d", "avg_pool2d"])
def test_second_derivative(name):
    tp.manual_seed(0)
    input = tp.randn(1, 2, 5, 5, dtype=tp.float64).requires_grad_()
    function = getattr(F, name)
    assert tp.autograd.gradcheck(lambda x: function(x, 3, 2, 1), (input,))
    assert tp.autograd.gradgradcheck(lambda x: function(x, 3, 2, 1), (input,))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: F.max_pool2d(tp.ones(4, 4), 2), RuntimeError),
        (lambda: F.max_pool2d(tp.ones(1, 1, 4, 4), 2, padding=2), RuntimeError),
        (lambda: F.max_pool2d(tp.ones(1, 1, 2, 2), 3), RuntimeError),
        (lambda: F.max_pool2d(tp.ones(1, 1, 4, 4), 0), RuntimeError),
        (lambda: F.max_pool2d(tp.ones(1, 1, 4, 4), (1, 2, 3)), RuntimeError),
        (lambda: F.max_pool2d(tp.ones(1, 1, 4, 4), 2.5), TypeError),
        (lambda: F.avg_pool2d(tp.ones(1, 1, 4, 4), 2, divisor_override=0), RuntimeError),
        (lambda: F.adaptive_avg_pool2d(tp.ones(1, 1, 4, 4), (1, 2, 3)), RuntimeError),
        (lambda: F.adaptive_avg_pool2d(tp.ones(1, 1, 0, 4), 1), RuntimeError),
        (lambda: F.max_unpool2d(tp.ones(1, 1, 2, 2), tp.ones(1, 1, 2, 2), 2), RuntimeError),
        (
            lambda: F.max_unpool2d(
                tp.ones(1, 1, 2, 2), tp.zeros(1, 1, 2, 2, dtype=tp.int64), 2, output_size=(9, 9)
            ),
            ValueError,
        ),
    ],
)
def test_bad_input(call, error):
    with pytest.raises(error):
        call()


WINDOWS = [*itertools.product((1, 2, 3), (1, 2), (0, 1), (1, 2, 4), (False, True))]


@pytest.mark.parametrize("whole", [False, True], ids=["kernel", "decomposition"])
def test_windows_in_the_padding(whole):
    """Where a window has padding alone, or what is as low, the value is torch's and the place inside."""
    torch = pytest.importorskip("torch", reason="torch is what is compared with")
    inf = float("inf")
    pool = get_op("max_pool").function if whole else get_op("max_pool").call
    for size, (kernel, stride, padding, dilation, ceil_mode) in itertools.product(
        (1, 2, 5), WINDOWS
    ):
        if padding * 2 > kernel or size + 2 * padding <= dilation * (kernel - 1):
            continue
        for row in ([-inf] * size, [-inf, 2.0, -inf, 1.0, -inf][:size]):
            options = (kernel, 1), (stride, 1), (padding, 0), (dilation, 1), ceil_mode
            expected = torch.nn.functional.max_pool2d(
                torch.tensor(row).reshape(1, 1, -1, 1), *options
            )
            values, places = pool(tp.tensor(row).reshape(1, 1, -1, 1), *options)
            assert values.tolist() == expected.tolist(), (row, options)
            flat = places.flatten().tolist()
            assert all(0 <= place < size for place in flat)
            for place, value in zip(flat, values.flatten().tolist(), strict=True):
                assert row[place] == value or value == -inf
