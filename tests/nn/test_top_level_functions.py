"""Functions that torch has at its top level with other arguments than in ``nn.functional``."""

import subprocess
import sys

import numpy as np
import pytest

import tensorplug as tp
from tensorplug.testing import assert_close


def calls(lib):
    """Return calls of each function on tensors of a library, by name."""
    random = np.random.default_rng(0)

    def tensor(*shape, positive=False):
        values = random.standard_normal(shape)
        return lib.tensor(np.abs(values) if positive else values, dtype=lib.float64)

    x, w = tensor(4, 3), tensor(3)
    signs = lib.tensor([1.0, -1.0, 1.0, -1.0], dtype=lib.float64)
    index = lib.tensor([0, 2, 1, 2])
    image, grid = tensor(2, 3, 5, 4), tensor(2, 3, 3, 2)
    cell = (tensor(4, 2), tensor(4, 2), tensor(8, 3), tensor(8, 2), tensor(8), tensor(8))
    statistics = (w, w, tensor(3), tensor(3, positive=True))
    log_probs = tensor(6, 2, 4).log_softmax(2)
    reduced = {
        "binary_cross_entropy_with_logits": (x, lib.sigmoid(x), w, w.abs()),
        "cosine_embedding_loss": (x, x + 1, signs, 0.2),
        "ctc_loss": (log_probs, lib.tensor([[1, 2], [3, 3]]), [6, 5], [2, 1], 0),
        "hinge_embedding_loss": (x[:, 0], signs, 0.5),
        "kl_div": (x, x.abs() + 0.1),
        "margin_ranking_loss": (x[:, 0], x[:, 1], signs, 0.1),
        "poisson_nll_loss": (x, x.abs(), True, True, 1e-6),
        "triplet_margin_loss": (x, x + 1, x - w, 1.0, 2.0, 1e-6, True),
    }
    found = {
        f"{name} {number}": getattr(lib, name)(*arguments, number)
        for name, arguments in reduced.items()
        for number in (0, 1, 2)
    }
    return found | {
        "adaptive_max_pool1d": lib.adaptive_max_pool1d(tensor(2, 3, 7), 3),
        "arccos_": lib.arccos_(x.clone().clamp(-1, 1)),
        "batch_norm": lib.batch_norm(image, *statistics, False, 0.1, 1e-5, True),
        "batch_norm training": lib.batch_norm(image, w, w, None, None, True, 0.1, 1e-5, True),
        "constant_pad_nd": lib.constant_pad_nd(image, (1, 2, 0, -1), 2.5),
        "dropout off": lib.dropout(x, 0.5, False),
        "dropout all": lib.dropout(x, 1.0, True),
        "alpha_dropout": lib.alpha_dropout(x, 0.5, False),
        "feature_dropout": lib.feature_dropout(image, 1.0, True),
        "feature_alpha_dropout": lib.feature_alpha_dropout(image, 0.3, False),
        "embedding": lib.embedding(x, index),
        "embedding padded": lib.embedding(x, index, 2),
        "embedding_renorm_": lib.embedding_renorm_(x.clone(), index, 0.5, 2.0),
        "frobenius_norm": lib.frobenius_norm(image, [1, 2]),
        "frobenius_norm kept": lib.frobenius_norm(image, 1, True),
        "grid_sampler": [
            lib.grid_sampler(image, grid, a, b, c)
            for a in (0, 1) for b in (0, 1, 2) for c in (False, True)
        ],
        "gru_cell": lib.gru_cell(x, cell[0], cell[2][:6], cell[3][:6], cell[4][:6], cell[5][:6]),
        "instance_norm": lib.instance_norm(image, w, w, None, None, True, 0.1, 1e-5, True),
        "lstm_cell": lib.lstm_cell(x, cell[:2], *cell[2:]),
        "lstm_cell without bias": lib.lstm_cell(x, cell[:2], *cell[2:4]),
        "max_pool1d_with_indices": lib.max_pool1d_with_indices(tensor(2, 3, 7), 2),
        "_addmm_activation": [
            lib._addmm_activation(x[:, :3], x, w.diag(), beta=2, alpha=0.5, use_gelu=gelu)
            for gelu in (False, True)
        ],
        "_aminmax": [*lib._aminmax(x), *lib._aminmax(x, 1), *lib._aminmax(x, 0, True)],
        "conv_tbc": lib.conv_tbc(tensor(5, 2, 3), tensor(2, 3, 4), tensor(4), 1),
        "convolution": [
            lib.convolution(tensor(2, 4, *[6] * n), tensor(4, 2, *[3] * n), tensor(4), [2] * n, [1] * n,
                            [1] * n, t, [int(t)] * n, 2)
            for n in (1, 2, 3) for t in (False, True)
        ],
        "embedding_bag": [
            lib.embedding_bag(x, index, lib.tensor([0, 1, 4]), False, mode, False, None, last)[0]
            for mode in (0, 1, 2) for last in (False, True)
        ],
        "embedding_bag's bags": lib.embedding_bag(x, index, lib.tensor([0, 1]), False, 1)[1:],
        "grid_sampler_2d": lib.grid_sampler_2d(image, grid, 2, 1, True),
        "grid_sampler_3d": lib.grid_sampler_3d(tensor(1, 2, 3, 3, 3), tensor(1, 2, 2, 2, 3), 1, 0, False),
        "native_batch_norm": [
            *lib.native_batch_norm(image, *statistics, False, 0.1, 1e-5),
            *lib.native_batch_norm(image, w, w, None, None, True, 0.1, 1e-5),
        ],
        "native_channel_shuffle": lib.native_channel_shuffle(tensor(2, 6, 2, 2), 3),
        "native_dropout": [*lib.native_dropout(x, 0.5, False), *lib.native_dropout(x, 1.0, None)],
        "native_group_norm": lib.native_group_norm(tensor(2, 4, 3), None, None, 2, 4, 3, 2, 1e-3),
        "native_layer_norm": lib.native_layer_norm(image, (5, 4), None, None, 1e-5),
        "hardshrink": [x.hardshrink(), x.hardshrink(1.0)],
        "norm_except_dim": [lib.norm_except_dim(image, 2, dim) for dim in (-1, 0, 1)],
        "nuclear_norm": [lib.nuclear_norm(x), lib.nuclear_norm(image, (2, 3)), lib.nuclear_norm(x, True)],
    }  # fmt: skip


def leaves(value):
    if isinstance(value, (list, tuple)):
        return [leaf for item in value for leaf in leaves(item)]
    return [value]


@pytest.mark.filterwarnings("ignore:(at..(frobenius|nuclear)_norm|_aminmax) is deprecated")
def test_values_as_torch():
    torch = pytest.importorskip("torch", reason="torch has the answers")
    expected = calls(torch)
    ours = calls(tp)
    assert len(ours) > 40
    for name, value in ours.items():
        pairs = zip(leaves(value), leaves(expected[name]), strict=True)
        for a, b in pairs:
            assert a.shape == b.shape, name
            np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-9, err_msg=name)


def test_dropout_and_where_it_kept():
    tp.manual_seed(0)
    x = tp.rand(1000) + 1
    dropped, kept = tp.native_dropout(x, 0.25, True)
    assert 650 < kept.sum() < 850
    assert_close(dropped, tp.where(kept, x / 0.75, 0.0))


def test_only_the_first_result_has_gradients():
    x = tp.rand(2, 4, 3).requires_grad_()
    for result, *others in (
        tp.native_layer_norm(x, (3,), None, None, 1e-5),
        tp.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5),
        tp.native_dropout(x, 0.5, True),
    ):
        assert result.requires_grad
        assert not any(value.requires_grad for value in others)


def test_all_results_of_a_group_norm_have_gradients():
    def of_group_norm(x):
        return tp.native_group_norm(x, None, None, 2, 4, 3, 2, 1e-5)

    assert tp.autograd.gradcheck(of_group_norm, tp.rand(2, 4, 3, dtype=tp.float64).requires_grad_())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (0, "but got zero"),
        ([], "no values"),
        ([1, 2], "more than one value"),
        ([0.0], "but got zero"),
    ],
)
def test_assert_async(value, message):
    with pytest.raises(RuntimeError, match=message):
        tp._assert_async(tp.tensor(value))
    assert tp._assert_async(tp.tensor(2.0)) is None
    with pytest.raises(RuntimeError, match=r"^why$"):
        tp._assert_async(tp.tensor(0), "why")


@pytest.mark.parametrize(
    ("what", "right", "wrong"),
    [
        ("size", (2, 3), (3, 2)),
        ("stride", [3, 1], [1, 2]),
        ("dtype", tp.float32, tp.int32),
        ("device", "cpu", "meta"),
        ("layout", tp.strided, tp.sparse_coo),
    ],
)
@pytest.mark.parametrize("namespace", [tp, tp.ops.aten], ids=["tp", "aten"])
def test_assert_tensor_metadata(namespace, what, right, wrong):
    x = tp.ones(2, 3)
    assert namespace._assert_tensor_metadata(x, **{what: right}) is None
    with pytest.raises(RuntimeError, match=f"Tensor {what}s? mismatch"):
        namespace._assert_tensor_metadata(x, **{what: wrong})


@pytest.mark.parametrize("namespace", [tp, tp.ops.aten], ids=["tp", "aten"])
def test_asserted_numbers_and_bools(namespace):
    assert namespace._assert_scalar(2, "why") is None
    with pytest.raises(RuntimeError, match=r"^why$"):
        namespace._assert_scalar(0.0, "why")
    for values in ([True, True], [True, False], [False, False], []):
        assert namespace._is_all_true(tp.tensor(values, dtype=tp.bool)).item() == all(values)
        assert namespace._is_any_true(tp.tensor(values, dtype=tp.bool)).item() == any(values)
    with pytest.raises(RuntimeError, match="bool"):
        namespace._is_all_true(tp.ones(2))


@pytest.mark.parametrize("namespace", [tp, tp.ops.aten], ids=["tp", "aten"])
def test_constrained_ranges(namespace):
    assert namespace.sym_constrain_range(-5, max=3) is None
    assert namespace.sym_constrain_range_for_size(3, min=2, max=3) is None
    for call in (
        lambda: namespace.sym_constrain_range(5, min=7),
        lambda: namespace.sym_constrain_range(5, max=3),
        lambda: namespace.sym_constrain_range_for_size(-1),
    ):
        with pytest.raises(RuntimeError, match="Invalid value range"):
            call()


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("input_dtype", [tp.float32, tp.float64])
def test_backward_of_softmax(name, input_dtype):
    x = tp.randn(3, 4, 2, dtype=tp.float64).requires_grad_()
    g = tp.randn(3, 4, 2, dtype=tp.float64)
    result = getattr(tp, name)(x, 1)
    (expected,) = tp.autograd.grad(result, x, g)
    for namespace in (tp, tp.ops.aten):
        backward = getattr(namespace, f"_{name}_backward_data")
        found = backward(g, result.detach(), 1, input_dtype)
        assert found.dtype == input_dtype
        tp.testing.assert_close(found, expected.to(input_dtype))


def test_a_reduction_that_is_none():
    with pytest.raises(ValueError, match="3 is not a valid value for reduction"):
        tp.kl_div(tp.ones(1), tp.ones(1), 3)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("jit", "leave other calls and decorators of the compiler out"),
        ("quantize_per_tensor", "bfloat16"),
        ("cudnn_convolution", "plugins"),
        ("sym_int", "plain ints"),
    ],
)
def test_a_name_that_is_not_there_says_why(name, why):
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': .*{why}"):
        getattr(tp, name)


@pytest.mark.parametrize("name", ["Stream", "Event", "CUDAGraph", "mem_get_info", "current_stream"])
def test_members_of_a_device_type_without_its_plugin(name):
    member = getattr(tp.xpu, name)
    assert member.__module__ == "tensorplug.xpu"
    assert member is getattr(tp.xpu, name) or not isinstance(member, type)
    with pytest.raises(tp.plugin.DeviceNotAvailableError, match="xpu"):
        member()


def test_what_a_device_type_tells_without_its_plugin():
    assert tp.xpu.memory_allocated() == tp.xpu.max_memory_allocated() == 0
    assert tp.xpu.memory_stats() == {}
    assert tp.xpu.default_generators == ()
    assert not tp.xpu.is_current_stream_capturing()
    with tp.xpu.stream(None):
        pass


def test_modules_move_by_a_method_of_the_class():
    assert tp.nn.Module.cuda.__name__ == "cuda"
    assert callable(tp.nn.Module.xpu)
    model = tp.nn.Linear(2, 1)
    assert tp.nn.Module.cpu(model) is model
    with pytest.raises(tp.plugin.DeviceNotAvailableError, match="xpu"):
        tp.nn.Module.xpu(model)

    class Own(tp.nn.Module):
        def cuda(self, device=None):
            return f"own {device}"

    assert Own().cuda(1) == "own 1"


def test_methods_that_come_with_the_functions_of_networks():
    """They are there before anything else of nn is."""
    program = """
import tensorplug as tp
x = tp.tensor([[-2.0, 0.25, 3.0]])
assert x.hardshrink().tolist() == [[-2.0, 0.0, 3.0]]
assert x.hardshrink(2.5).tolist() == [[0.0, 0.0, 3.0]]
assert x.prelu(tp.tensor([0.5, 1.0, 2.0])).tolist() == [[-1.0, 0.25, 3.0]]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_names_of_python_2():
    x, number = tp.tensor([4.0, 8.0]), tp.tensor(3.7)
    assert x.__div__(2).tolist() == [2.0, 4.0]
    assert x.__rdiv__(2).tolist() == [0.5, 0.25]
    assert number.__long__() == 3
    assert number.__nonzero__() is True
    assert x.__idiv__(2) is x
    assert x.tolist() == [2.0, 4.0]
