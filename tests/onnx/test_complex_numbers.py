"""Programs that compute with complex numbers inside: in ONNX these are pairs of real ones."""

import numpy as np
import pytest

import tensorplug as tp

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")
import op_samples  # noqa: E402

nn = tp.nn


class Rotated(nn.Module):
    """Positions as rotations of pairs: products with complex numbers, as in Llama."""

    def __init__(self):
        super().__init__()
        angles = tp.arange(16.0).outer(1 / 10 ** tp.arange(4.0))
        self.register_buffer("turns", tp.polar(tp.ones_like(angles), angles))
        self.linear = nn.Linear(8, 8)

    def forward(self, x):
        pairs = tp.view_as_complex(self.linear(x).reshape(*x.shape[:-1], -1, 2))
        return tp.view_as_real(pairs * self.turns[: x.shape[-2]]).flatten(-2)


class Filtered(nn.Module):
    """A product in the space of frequencies, as in GFNet."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(tp.randn(6, 5, 3, 2))

    def forward(self, x):
        made = tp.fft.rfft2(x, dim=(1, 2), norm="ortho") * tp.view_as_complex(self.weight)
        return tp.fft.irfft2(made, s=x.shape[1:3], dim=(1, 2), norm="ortho")


class Mixed(nn.Module):
    """Transforms over two dimensions instead of attention, as in FNet."""

    def forward(self, x):
        return tp.fft.fftn(x, dim=(1, 2)).real


class Spectrum(nn.Module):
    """How loud and at which phase the frequencies of a signal are."""

    def forward(self, x):
        made = tp.fft.rfft(x, 12) / (2 - 1j)
        both = tp.cat([made, made.conj().exp()], -1)
        return both.abs(), (both - 1j).imag, tp.where(both.real > 0, both, 1.0 + 0 * both).real


MODELS = {
    "rotated": (Rotated, (2, 5, 8), {0: "batch", 1: "tokens"}),
    "filtered": (Filtered, (2, 6, 8, 3), {0: "batch"}),
    "mixed": (Mixed, (2, 6, 8), {0: "batch"}),
    "spectrum": (Spectrum, (3, 10), {0: "batch"}),
}


@pytest.mark.parametrize("opset", [18, 20])
@pytest.mark.parametrize("varies", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_models(name, varies, opset):
    kind, shape, dims = MODELS[name]
    tp.manual_seed(0)
    model = kind().eval()
    x = tp.randn(*shape)
    shapes = (dims,) if varies else None
    proto = tp.onnx.export(model, (x,), dynamic_shapes=shapes, opset_version=opset)
    onnx.checker.check_model(proto, full_check=True)
    other = tp.randn(shape[0] + 1, *shape[1:]) if varies else tp.randn(*shape)
    with tp.no_grad():
        for given in (x, other):
            wanted = model(given)
            wanted = wanted if isinstance(wanted, tuple) else (wanted,)
            for one, want in zip(op_samples.run(proto, [given]), wanted, strict=True):
                np.testing.assert_allclose(one, want.numpy(), rtol=1e-4, atol=1e-4)
            found = tp.onnx.load(proto)(given)
            found = found if isinstance(found, (tuple, list)) else (found,)
            for one, want in zip(found, wanted, strict=True):
                np.testing.assert_allclose(one.numpy(), want.numpy(), rtol=1e-4, atol=1e-4)


def test_what_goes_in_and_out_is_real():
    x = tp.randn(3, dtype=tp.complex64)
    with pytest.raises(tp.onnx.UnsupportedOperatorError, match="may take view_as_real of it"):
        tp.onnx.export(lambda x: (x * 2).abs(), (x,))
    with pytest.raises(tp.onnx.ONNXError, match="return view_as_real"):
        tp.onnx.export(lambda x: tp.complex(x, x), (x.real.clone(),))
