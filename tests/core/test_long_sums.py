"""What adds up many numbers is as exact over any dimension: errors do not grow with the length."""

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.nn import functional as F

ROWS = 300_000
#: Functions of a matrix of positive numbers, (rows, 4); but for those that add up one by one, as torch's do:
#: pooling, bincount, einsum, the third norm.
FUNCTIONS = {
    "batch_norm": lambda x: F.batch_norm(x, None, None, training=True),
    "conv1d": lambda x: F.conv1d(x.t()[None], x.t()[None]),
    "corrcoef": lambda x: tp.corrcoef(x.t()),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x * x, dim=0),
    "cov": lambda x: tp.cov(x.t()),
    "cross_entropy": lambda x: F.cross_entropy(x, tp.arange(ROWS) % 4),
    "cumsum": lambda x: x.cumsum(0),
    "cumulative_trapezoid": lambda x: tp.cumulative_trapezoid(x, dim=0),
    "dist": lambda x: tp.dist(x, x * 1.5),
    "dot": lambda x: tp.dot(x[:, 0], x[:, 1]),
    "group_norm": lambda x: F.group_norm(x.t()[None], 2),
    "instance_norm": lambda x: F.instance_norm(x.t()[None]),
    "kl_div": lambda x: F.kl_div(x.log(), x * 1.1, reduction="sum"),
    "layer_norm": lambda x: F.layer_norm(x, tuple(x.shape)),
    "log_softmax": lambda x: x.log_softmax(0),
    "logcumsumexp": lambda x: x.logcumsumexp(0),
    "logsumexp": lambda x: x.logsumexp(0),
    "matmul": lambda x: x.t() @ x,
    "matrix_norm": lambda x: tp.linalg.matrix_norm(x),
    "mean": lambda x: x.mean(0),
    "mean of all": lambda x: x.mean(),
    "mse_loss": lambda x: F.mse_loss(x, x * 1.1),
    "nanmean": lambda x: x.nanmean(0),
    "nansum": lambda x: x.nansum(0),
    "normalize": lambda x: F.normalize(x, dim=0),
    "renorm": lambda x: tp.renorm(x, 2, 1, 1.0),
    "softmax": lambda x: x.softmax(0),
    "std": lambda x: x.std(0),
    "sum": lambda x: x.sum(0),
    "sum of blocks": lambda x: x.reshape(300, 1000, 2, 2).sum((0, 1, 3)),
    "sum of slices": lambda x: x[::2, 1:].sum(0),
    "sum of transposed": lambda x: x.t().sum(1),
    "trapezoid": lambda x: tp.trapezoid(x, dim=0),
    "var": lambda x: x.var(0),
}
#: Gradients of a small matrix that is used in each row.
GRADIENTS = {
    "broadcast": lambda x, w: (x * w[0]).sum(),
    "expand": lambda x, w: (w[:1].expand(ROWS, 4) * x).sum(),
    "layer_norm": lambda x, w: (F.layer_norm(x, (4,), w[0], w[1]) * x).sum(),
    "linear": lambda x, w: F.linear(x, w[:4], w[4]).square().mean(),
}


def assert_exact(found, exact):
    found, exact = found.detach().double().numpy(), exact.detach().numpy()
    size = np.maximum(np.abs(exact), 0.1 * np.abs(exact).max())
    assert (np.abs(found - exact) / size).max() / 2.0**-24 < 40


@pytest.fixture(scope="module")
def rows():
    return tp.tensor(np.random.default_rng(0).random((ROWS, 4)) + 0.5, dtype=tp.float32)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values(name, rows):
    assert_exact(FUNCTIONS[name](rows), FUNCTIONS[name](rows.double()))


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients(name, rows):
    found = []
    for x in (rows, rows.double()):
        w = tp.linspace(0.5, 1.5, 20).reshape(5, 4).to(x.dtype).requires_grad_()
        GRADIENTS[name](x, w).backward()
        found.append(w.grad)
    assert_exact(*found)
