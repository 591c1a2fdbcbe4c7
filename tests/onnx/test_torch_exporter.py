"""Models that torch's exporters wrote, the one over torch.export and the older one."""

import os
import warnings

import numpy as np
import pytest

import tensorplug as tp

pytest.importorskip("onnx")
torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional

pytestmark = pytest.mark.filterwarnings("ignore")


class Block(nn.Module):
    """A layer of a GPT with its embedding and head."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.norm = nn.LayerNorm(32)
        self.qkv = nn.Linear(32, 96)
        self.out = nn.Linear(32, 32)
        self.head = nn.Linear(32, 50)

    def forward(self, tokens):
        h = self.embedding(tokens)
        n, t = tokens.shape
        q, k, v = self.qkv(self.norm(h)).view(n, t, 3, 4, 8).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.head(F.gelu(h + self.out(a.transpose(1, 2).reshape(n, t, 32))))


MODELS = {
    "convolutions": lambda: (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=2), nn.SiLU(), nn.AdaptiveAvgPool2d(1),
            nn.Flatten(), nn.Linear(16, 5),
        ),
        torch.randn(2, 3, 16, 16),
    ),
    "perceptrons": lambda: (
        nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 2)),
        torch.randn(3, 4),
    ),
    "gpt": lambda: (Block(), torch.randint(0, 50, (2, 7))),
    "lstm": lambda: (nn.LSTM(4, 6, 2, bidirectional=True, batch_first=True), torch.randn(2, 5, 4)),
    "gru": lambda: (nn.GRU(4, 6), torch.randn(5, 2, 4)),
    "images": lambda: (
        nn.Sequential(
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.ConvTranspose2d(3, 4, 3, stride=2, output_padding=1, padding=1),
            nn.InstanceNorm2d(4), nn.GroupNorm(2, 4), nn.PReLU(4),
        ),
        torch.randn(1, 3, 6, 6),
    ),
}  # fmt: skip


#: The exporter over torch.export takes seconds for each model.
CASES = [(name, False) for name in MODELS] + [
    (name, True) for name in (MODELS if os.environ.get("TENSORPLUG_FUZZ") else ["perceptrons"])
]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dynamo"), CASES)
def test_values_and_gradients(name, dynamo, tmp_path):
    if dynamo:
        pytest.importorskip("onnxscript")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model, x = MODELS[name]()
    model.eval()
    path = tmp_path / "model.onnx"
    options = {} if dynamo else {"opset_version": 17}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(model, (x,), path, dynamo=dynamo, verbose=False, **options)
    module = tp.onnx.load(path)
    found = module(tp.from_numpy(x.numpy()))
    expected = model(x)
    if not isinstance(expected, tuple):
        found, expected = (found,), (expected,)
    else:  # of a recurrent network the output, then its states
        flat = expected[1] if isinstance(expected[1], tuple) else (expected[1],)
        expected = (expected[0], *flat)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(
            one.detach().numpy(), other.detach().numpy(), rtol=1e-4, atol=1e-5
        )
    found[0].square().sum().backward()
    expected[0].square().sum().backward()
    grads = {p.grad.shape: 0 for p in module.parameters() if p.grad is not None}
    assert grads
    by_name = dict(model.named_parameters())
    for key, parameter in module.named_parameters():
        if key in by_name and parameter.shape == by_name[key].shape and parameter.grad is not None:
            np.testing.assert_allclose(
                parameter.grad.numpy(), by_name[key].grad.numpy(), rtol=1e-3, atol=1e-4
            )
