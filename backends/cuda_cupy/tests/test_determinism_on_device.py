"""``use_deterministic_algorithms``: no kernel whose sums depend on the order of threads runs."""

import warnings

import pytest
from on_device import HOSTED, REASON, integers, needs_device, randoms

import tensorplug as tp
from tensorplug.plugin import alert_not_deterministic
from tensorplug_cuda_cupy import sources

pytestmark = needs_device
F = tp.nn.functional
LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.transpose(0, -1).contiguous().transpose(0, -1),
}
#: Kernels that add up by atomic operations.
ATOMIC = {"accumulate", "add_rows", "max_pool_backward"}
ROWS = integers(0, 4, (40,))
PLACES = integers(0, 4, (40, 6))


def grad(function):
    """Return an op that gives the gradient of another, whose result is weighted unevenly."""

    def op(x):
        x = x.detach().requires_grad_()
        result = function(x)
        weights = randoms(*result.shape, seed=9).to(result.device, result.dtype)
        return tp.autograd.grad(result, x, weights)[0]

    return op


def image(*size):
    return lambda x: x.reshape(-1)[: 240 // 8 * 8].reshape(*size)


def on(x, there):
    return there.to(x.device)


#: Each a function of a tensor (40, 6).
OPS = {
    "index_add": lambda x: x[:4].index_add(0, on(x, ROWS), x),
    "scatter_add": lambda x: x[:4].scatter_add(0, on(x, PLACES), x),
    "scatter_reduce_sum": lambda x: x[:4].scatter_reduce(0, on(x, PLACES), x, "sum", include_self=False),
    "scatter_reduce_mean": lambda x: x[:4].scatter_reduce(0, on(x, PLACES), x, "mean"),
    "scatter_reduce_prod": lambda x: x[:4].scatter_reduce(0, on(x, PLACES), x, "prod"),
    "scatter": lambda x: x[:4].scatter(0, on(x, PLACES), x),
    "index_copy": lambda x: x[:4].index_copy(0, on(x, ROWS), x),
    "index_put": lambda x: x[:4].index_put((on(x, ROWS),), x),
    "index_put_add": lambda x: x[:4].index_put((on(x, ROWS - 4),), x, accumulate=True),
    "index_put_add_two": lambda x: x[:4].index_put(
        (on(x, ROWS), on(x, ROWS).flip(0)), x[:, 0], accumulate=True
    ),
    "put": lambda x: x[:4].put(on(x, PLACES), x, accumulate=True),
    "bincount": lambda x: tp.bincount(on(x, ROWS), x[:, 1].abs().float()),
    "cumsum": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(-1),
    "gather_grad": grad(lambda x: x.gather(0, on(x, PLACES))),
    "index_select_grad": grad(lambda x: x.index_select(0, on(x, ROWS))),
    "getitem_grad": grad(lambda x: x[on(x, ROWS), on(x, ROWS)]),
    "take_grad": grad(lambda x: x.take(on(x, PLACES))),
    "repeat_interleave_grad": grad(lambda x: x[:4].repeat_interleave(on(x, ROWS[:4]), 0)),
    "embedding_grad": grad(lambda x: F.embedding(on(x, ROWS), x, padding_idx=1)),
    "embedding_freq_grad": grad(lambda x: F.embedding(on(x, ROWS), x, scale_grad_by_freq=True)),
    "embedding_bag_grad": grad(lambda x: F.embedding_bag(on(x, PLACES), x, mode="sum")),
    "max_pool1d_grad": grad(lambda x: F.max_pool1d(image(2, 3, 40)(x), 4, 1)),
    "max_pool2d_grad": grad(lambda x: F.max_pool2d(image(2, 3, 5, 8)(x), 3, 1, 1)),
    "max_pool2d_last_grad": grad(
        lambda x: F.max_pool2d(image(2, 3, 5, 8)(x).to(memory_format=tp.channels_last), 3, 1, 1)
    ),
    "max_pool3d_grad": grad(lambda x: F.max_pool3d(image(2, 3, 2, 4, 5)(x), 2, 1)),
    "adaptive_max_pool_grad": grad(lambda x: F.adaptive_max_pool2d(image(2, 3, 5, 8)(x), (3, 5))),
    "adaptive_avg_pool_grad": grad(lambda x: F.adaptive_avg_pool2d(image(2, 3, 5, 8)(x), (3, 5))),
    "max_unpool": lambda x: F.max_unpool1d(x[None].abs(), on(x, PLACES).sort(0)[0][None], 1, 1),
    "interpolate_grad": grad(
        lambda x: F.interpolate(image(2, 3, 5, 8)(x), (7, 9), mode="bilinear", align_corners=False)
    ),
    "reflection_pad_grad": grad(lambda x: F.pad(image(2, 3, 5, 8)(x), (2, 1, 1, 2), mode="reflect")),
    "replication_pad_grad": grad(lambda x: F.pad(image(2, 3, 5, 8)(x), (2, 1, 1, 2), mode="replicate")),
    "fold": lambda x: F.fold(x.reshape(1, 6, 40)[..., :9], (4, 3), (2, 1)),
}  # fmt: skip


@pytest.fixture(autouse=True)
def launched(monkeypatch):
    """Want determinism, and note which of our kernels run."""
    names, launch = [], sources.launch

    def noted(source, name, dtype, *rest, **macros):
        if "int" not in dtype:  # whose sums are exact
            names.append(name)
        launch(source, name, dtype, *rest, **macros)

    monkeypatch.setattr(sources, "launch", noted)
    tp.use_deterministic_algorithms(True)
    yield names
    tp.use_deterministic_algorithms(False)


@pytest.mark.parametrize(
    ("dtype", "layout"),
    [(tp.float16, "rows"), (tp.bfloat16, "columns"), (tp.float32, "columns"), (tp.float64, "rows")],
    ids=str,
)
@pytest.mark.parametrize("name", OPS)
def test_ops_add_up_in_order(name, dtype, layout, launched):
    x = randoms(40, 6).to(dtype)
    expected = OPS[name](x)
    found = [OPS[name](LAYOUTS[layout](x.cuda())).cpu() for _ in range(2)]
    assert not ATOMIC & set(launched)
    assert tp.equal(*found)
    tolerance = {tp.float16: 1e-2, tp.bfloat16: 6e-2, tp.float32: 1e-4, tp.float64: 1e-11}[dtype]
    tp.testing.assert_close(found[0], expected, rtol=tolerance, atol=tolerance)
    # The host's driver, with the last thread first, would give other bits if threads met anywhere.
    if HOSTED and dtype == tp.float64 and name in ("index_add", "scatter_add", "embedding_grad"):
        assert tp.equal(found[0], expected)


def test_atomic_kernels_serve_where_nobody_asked(launched):
    x = randoms(40, 6).cuda()
    for wanted, kernel in ((False, "accumulate"), (True, "accumulate_sorted")):
        tp.use_deterministic_algorithms(wanted)
        launched.clear()
        OPS["index_add"](x)
        assert [name for name in launched if name.startswith("accumulate")] == [kernel]


def test_what_cannot_says_so():
    message = "my_kernel does not have a deterministic implementation"
    with pytest.raises(RuntimeError, match=message):
        alert_not_deterministic("my_kernel")
    tp.use_deterministic_algorithms(True, warn_only=True)
    with pytest.warns(UserWarning, match=message):
        alert_not_deterministic("my_kernel")
    tp.use_deterministic_algorithms(False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        alert_not_deterministic("my_kernel")


if REASON is not None:
    OPS.clear()
