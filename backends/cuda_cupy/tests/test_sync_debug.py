"""A training step asks for nothing that would wait for the GPU: not the library above, not the kernels."""

import warnings

import pytest
from on_device import HOSTED, needs_device, waits

import tensorplug as tp
from tensorplug_cuda_cupy.runtime import sync_debug as modes

nn = tp.nn


@pytest.fixture
def mode():
    """Return a function that says what happens to what waits; in the end, it may."""
    yield tp.cuda.set_sync_debug_mode
    tp.cuda.set_sync_debug_mode("default")


class Tokens(nn.Module):
    """An embedding, and a transformer's layer that looks back."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(3, 8)
        self.places = nn.Parameter(tp.randn(6, 8))
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
        self.output = nn.Linear(8, 3)

    def forward(self, x):
        tokens = (x > 0).long() + (x > 1).long()
        mask = nn.Transformer.generate_square_subsequent_mask(6, device=x.device)
        hidden = self.embedding(tokens) + self.places
        return self.output(self.layer(hidden, src_mask=mask, is_causal=True))[:, -1]


class Sequences(nn.Module):
    """A recurrent network."""

    def __init__(self):
        super().__init__()
        self.cells = nn.LSTM(2, 8, batch_first=True)
        self.output = nn.Linear(8, 3)

    def forward(self, x):
        return self.output(self.cells(x.reshape(-1, 3, 2))[0][:, -1])


def layers():
    return nn.Sequential(
        nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(0.1), nn.Linear(8, 8), nn.ReLU(),
        nn.Linear(8, 3),
    )  # fmt: skip


def images():
    return nn.Sequential(
        nn.Unflatten(1, (1, 2, 3)), nn.Upsample(scale_factor=4), nn.Conv2d(1, 4, 3, padding=1),
        nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 4, 3), nn.GroupNorm(2, 4), nn.SiLU(),
        nn.AdaptiveAvgPool2d((2, 3)), nn.Flatten(), nn.Linear(24, 3),
    )  # fmt: skip


def train(device, network, optimizer, options, dtype):
    """Take three steps; return the losses, read after all of them, and how often somebody waited."""
    tp.manual_seed(0)
    model = network().to(device)
    optimizer = getattr(tp.optim, optimizer)(model.parameters(), lr=0.01, **options)
    scaler = tp.amp.GradScaler(device, enabled=dtype is not None)
    data = tp.utils.data.TensorDataset(tp.randn(15, 6), tp.arange(15) % 3)
    batches = iter(tp.utils.data.DataLoader(data, batch_size=5, pin_memory=True))
    tp.manual_seed(1)  # each device's generator begins anew
    losses, before = [], waits() if HOSTED else 0
    for x, target in batches:
        assert x.is_pinned()
        inputs = x.to(device, non_blocking=True)
        optimizer.zero_grad()
        with tp.autocast(device, dtype, enabled=dtype is not None):
            loss = nn.functional.cross_entropy(model(inputs), target.to(device))
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.detach().to("cpu", non_blocking=True))
    waited = (waits() if HOSTED else 0) - before
    if device == "cuda":
        tp.cuda.synchronize()
    return [loss.item() for loss in losses], waited


CASES = [
    (layers, "SGD", {"momentum": 0.9}, None),
    (layers, "AdamW", {"fused": True}, tp.float16),
    (layers, "AdamW", {"fused": True}, tp.bfloat16),
    (layers, "SGD", {"momentum": 0.9, "fused": True}, tp.bfloat16),
    (layers, "Adafactor", {}, None),
    (images, "AdamW", {}, None),
    (Sequences, "RMSprop", {}, None),
    (Tokens, "AdamW", {"fused": True}, None),
]


@needs_device
@pytest.mark.parametrize(
    ("network", "optimizer", "options", "dtype"),
    CASES,
    ids=[f"{c[0].__name__}-{c[1]}-{c[3]}" for c in CASES],
)
def test_training_waits_for_nothing(mode, network, optimizer, options, dtype):
    mode("error")
    losses, waited = train("cuda", network, optimizer, options, dtype)
    assert waited == 0
    expected, _ = train("cpu", network, optimizer, options, None)
    assert losses == pytest.approx(expected, rel=1e-5 if dtype is None else 2e-2)


@needs_device
def test_what_waits_is_noticed(mode):
    # Without `fused`, the scaler asks the host whether to take the step.
    case = ("cuda", layers, "AdamW", {}, tp.float16)
    assert (train(*case)[1] > 0) == HOSTED
    mode("error")
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        train(*case)
    mode("default")
    x = tp.ones(3, device="cuda")
    tp.cuda.synchronize()
    calls = (
        x.sum().item, x.tolist, x.cpu, x.nonzero, lambda: bool(x[0] > 0), tp.cuda.synchronize,
        tp.cuda.current_stream().synchronize, tp.cuda.Event().record, x.contiguous,
    )  # fmt: skip
    found = []
    for call in calls:
        before = waits() if HOSTED else 0
        call()
        found.append((waits() if HOSTED else 1) > before)
    assert not HOSTED or found == [True] * 7 + [False] * 2


@needs_device
def test_waiting_is_warned_of_or_refused(mode):
    x = tp.arange(4.0).to("cuda")
    mode("error")
    y = (x * 2).sum()
    late = y.to("cpu", non_blocking=True)
    for wait in (y.item, y.cpu, x.nonzero, lambda: bool(y > 0)):
        with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
            wait()
    mode(1)
    assert tp.cuda.get_sync_debug_mode() == 1
    with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
        x.cpu()
    mode("default")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.cpu()
    tp.cuda.synchronize()
    assert late.item() == 12


def test_cupy_asks_before_it_waits():
    pytest.importorskip("cupy", reason="CuPy is not installed: make test-cuda-compile installs it")
    from cupy._core import syncdetect

    before = syncdetect._declare_synchronize
    assert callable(before)
    try:
        modes.set_mode("error")
        modes.set_mode("warn")
        assert syncdetect._declare_synchronize is modes.note
    finally:
        modes.set_mode("default")
    assert syncdetect._declare_synchronize is before


@pytest.mark.parametrize(
    ("value", "error"),
    [("loud", RuntimeError), (3, RuntimeError), (True, TypeError), (None, TypeError)],
)
def test_modes_that_are_none(value, error):
    with pytest.raises(error, match="set_sync_debug_mode"):
        modes.set_mode(value)
    assert modes.mode() == 0
