"""The choice of attention, DataParallel, folded batch normalisations, modules without initial values."""

import warnings

import pytest

import tensorplug as tp
from tensorplug import nn
from tensorplug.nn.attention import SDPBackend, chosen_backends, sdpa_kernel


def test_the_choice_of_attention_nests():
    assert chosen_backends() is None
    with sdpa_kernel(SDPBackend.MATH):
        assert chosen_backends() == (SDPBackend.MATH,)
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH], set_priority=True):
            assert chosen_backends() == (SDPBackend.FLASH_ATTENTION, SDPBackend.MATH)
        assert chosen_backends() == (SDPBackend.MATH,)
    assert chosen_backends() is None
    with pytest.raises(TypeError, match="SDPBackend"), sdpa_kernel(["math"]):
        pass


def test_backends_have_torchs_numbers():
    torch = pytest.importorskip("torch", reason="numbers are torch's")
    theirs = torch.nn.attention.SDPBackend.__members__
    assert {name: int(value) for name, value in theirs.items()} == dict(SDPBackend.__members__)


def test_data_parallel_calls_the_module():
    model = nn.Linear(2, 3)
    parallel = nn.DataParallel(model, device_ids=[0])
    x = tp.ones(4, 2)
    assert parallel(x).tolist() == model(x).tolist()
    assert nn.parallel.data_parallel(model, x).tolist() == model(x).tolist()
    assert list(parallel.state_dict()) == ["module.weight", "module.bias"]
    with pytest.raises(NotImplementedError, match="several devices"):
        nn.DataParallel(model, device_ids=[0, 1])


@pytest.mark.parametrize(
    ("name", "options", "shape"),
    [
        ("Conv1d", (4, 6, 3), (2, 4, 7)),
        ("Conv2d", (4, 6, 3), (2, 4, 7, 7)),
        ("ConvTranspose2d", (4, 6, 3), (2, 4, 7, 7)),
        ("Linear", (4, 6), (2, 4)),
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_folded_layers_do_the_same(name, options, shape, bias):
    tp.manual_seed(0)
    layer = getattr(nn, name)(*options, bias=bias).double().eval()
    count = {2: 1, 3: 1, 4: 2}[len(shape)]
    norm = getattr(nn, f"BatchNorm{count}d")(6).double()
    norm(tp.randn(8, 6, *shape[2:], dtype=tp.float64) * 3 + 1)
    with tp.no_grad():
        norm.weight.uniform_(0.5, 2)
        norm.bias.normal_()
    norm.eval()
    if name == "Linear":
        fused = nn.utils.fuse_linear_bn_eval(layer, norm)
    else:
        fused = nn.utils.fuse_conv_bn_eval(layer, norm, transpose="Transpose" in name)
    x = tp.randn(*shape, dtype=tp.float64)
    assert tp.allclose(fused(x), norm(layer(x)))
    assert (layer.bias is None) is not bias
    with pytest.raises(AssertionError, match="eval"):
        nn.utils.fuse_conv_bn_eval(layer, norm.train())


def test_folding_asks_for_fitting_layers():
    with pytest.raises(AssertionError, match="num_features"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(4).eval())
    norm = nn.BatchNorm1d(3, track_running_stats=False).eval()
    with pytest.raises(AssertionError, match="running statistics"):
        nn.utils.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), norm)


def test_modules_without_initial_values():
    made = nn.utils.skip_init(nn.Linear, 3, 4, dtype=tp.float64)
    assert made.weight.shape == (4, 3)
    assert made.weight.dtype is tp.float64
    assert made.weight.device.type == "cpu"
    with pytest.raises(RuntimeError, match="device"):
        nn.utils.skip_init(nn.ReLU)
    with pytest.raises(RuntimeError, match="Expected a Module"):
        nn.utils.skip_init(dict)
    with pytest.raises(TypeError, match="must be a class"):
        nn.utils.skip_init(len)


def test_the_old_name_of_clipping_warns():
    x = tp.ones(1, requires_grad=True)
    x.grad = tp.full((1,), 2.0)
    with pytest.warns(FutureWarning, match="clip_grad_norm_"):
        assert nn.utils.clip_grad_norm([x], 1.0).item() == 2.0
    assert x.grad.item() == pytest.approx(1.0)


def test_switches_of_libraries():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tp.backends.cudnn.benchmark = True
        tp.backends.cudnn.deterministic = True
        assert tp.backends.cudnn.benchmark
        tp.backends.cudnn.benchmark = tp.backends.cudnn.deterministic = False
        with tp.backends.cuda.sdp_kernel(enable_flash=True, enable_math=False):
            assert not tp.backends.cuda.math_sdp_enabled()
        assert tp.backends.cuda.math_sdp_enabled()
        tp.backends.cuda.enable_flash_sdp(False)
        assert not tp.backends.cuda.flash_sdp_enabled()
        tp.backends.cuda.enable_flash_sdp(True)
        assert tp.backends.cuda.flash_sdp_enabled()
        for name in ("mps", "mkldnn", "openmp", "cudnn"):
            assert getattr(tp.backends, name).is_available() is False
        assert tp.backends.cpu.is_available()
        assert isinstance(tp.backends.cpu.get_cpu_capability(), str)
