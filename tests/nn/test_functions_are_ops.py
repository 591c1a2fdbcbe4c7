"""Every public function of nn.functional is an op, or another spelling of one."""

import contextlib

import numpy as np
import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug.core.dispatch.op_registry import get_op
from tensorplug.plugin import FLOATS, Kernel, hookimpl

# Families whose functions are still made of ops that have other names.
OPEN = {
    "attention": "scaled_dot_product_attention and its kin call ops of a list of tensors",
    "convolution": "conv1d to conv3d share one op",
    "embedding": "embedding_bag is made of several ops",
    "linear": "bilinear is made of products",
    "padding": "pad has a mode per op",
    "pooling": "one op for all numbers of dimensions",
    "upsampling": "one op per mode",
    "vision": "grids and shuffles are made of ops",
}
PUBLIC = sorted(
    name
    for name, value in vars(F).items()
    if callable(value) and not name.startswith("_") and not isinstance(value, type)
)


def family_of(function):
    """Return the family of a function, by the module that declares it."""
    module = getattr(function, "__module__", "")
    for layer in ("functional", "ops"):
        _, found, rest = module.partition(f"tensorplug.nn.{layer}.")
        if found:
            return rest.partition(".")[0]
    return ""


def is_op(function):
    return hasattr(function, "op")


@pytest.mark.parametrize("name", PUBLIC)
def test_explain_accepts_it(name):
    function = getattr(F, name)
    if not is_op(function):
        assert family_of(function) in OPEN
        pytest.skip(OPEN[family_of(function)])
    assert tp.explain(function).op == tp.explain(f"nn.functional.{name}").op
    assert not function.op.name.startswith("_")


TRAINED = {
    "batch_norm": lambda x: F.batch_norm(x, tp.zeros(3), tp.ones(3), training=True),
    "binary_cross_entropy": lambda x: F.binary_cross_entropy(x.sigmoid(), tp.ones(4, 3)),
    "celu": F.celu,
    "cross_entropy": lambda x: F.cross_entropy(x, tp.tensor([0, 1, 2, 0])),
    "gelu": F.gelu,
    "group_norm": lambda x: F.group_norm(x, 3),
    "huber_loss": lambda x: F.huber_loss(x, tp.zeros(4, 3)),
    "instance_norm": lambda x: F.instance_norm(x.unsqueeze(0)),
    "layer_norm": lambda x: F.layer_norm(x, (3,), tp.ones(3), tp.zeros(3)),
    "log_softmax": lambda x: F.log_softmax(x, 1),
    "mse_loss": lambda x: F.mse_loss(x, tp.zeros(4, 3)),
    "nll_loss": lambda x: F.nll_loss(x, tp.tensor([0, 1, 2, 0])),
    "normalize": F.normalize,
    "prelu": lambda x: F.prelu(x, tp.ones(3)),
    "rms_norm": lambda x: F.rms_norm(x, (3,)),
    "selu": F.selu,
    "silu": F.silu,
    "softmax": lambda x: F.softmax(x, 1),
    "tanhshrink": F.tanhshrink,
}


def stranger_with(op, kernel):
    """Return a plugin with one kernel."""

    class Stranger:
        name = "stranger"

        @hookimpl
        def tensorplug_kernels(self):
            return [Kernel(op, "cpu", kernel, dtypes=FLOATS, priority=1000)]

    return Stranger()


@contextlib.contextmanager
def registered(plugin):
    tp.plugins.register(plugin)
    try:
        yield
    finally:
        tp.plugins.unregister(plugin.name)


@pytest.mark.parametrize("name", TRAINED)
def test_a_kernel_of_its_name_is_called_in_training(name):
    op = get_op(f"nn.functional.{name}")
    calls = []

    def kernel(*arguments):
        calls.append(arguments)
        values = [tp.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arguments]
        return np.asarray(op.decompose(tuple(values)).detach().numpy())

    x = tp.rand(4, 3, requires_grad=True)
    (expected,) = tp.autograd.grad(TRAINED[name](x).square().sum(), x)
    with registered(stranger_with(op.name, kernel)):
        result = TRAINED[name](x)
        assert calls
        assert tp.explain(name).kernel.plugin == "stranger"
        (found,) = tp.autograd.grad(result.square().sum(), x)
    tp.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_a_kernel_of_batch_norm_moves_the_statistics():
    calls = []

    def kernel(x, mean, var, weight, bias, training, momentum, eps):
        calls.append(training)
        mean += 1
        return x * 2

    mean, var = tp.zeros(3), tp.ones(3)
    x = tp.arange(12.0).reshape(4, 3).requires_grad_()
    with registered(stranger_with("batch_norm", kernel)):
        result = F.batch_norm(x, mean, var, training=True)
        (gradient,) = tp.autograd.grad(result.sum(), x)
    assert calls == [True]
    assert mean.tolist() == [1, 1, 1]
    tp.testing.assert_close(result, x * 2)
    # Of the decomposition, which standardises.
    tp.testing.assert_close(gradient, tp.zeros(4, 3), rtol=0, atol=1e-5)


def test_a_kernel_of_a_gradient_gets_one_dtype():
    # As autocast has it on the CPU; a kernel that is of half precision cannot tell what the weight's is.
    x = tp.rand(4, 3, dtype=tp.bfloat16, requires_grad=True)
    weight, bias = tp.ones(3, requires_grad=True), tp.zeros(3, requires_grad=True)
    F.layer_norm(x, (3,), weight, bias).sum().backward()
    for tensor in (weight, bias):
        assert tensor.grad.numpy().dtype == np.float32
