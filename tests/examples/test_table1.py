"""The six models of Table 1: published sizes, and three steps that give torch's losses."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tensorplug as tp

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks aren't installed

from benchmarks.libraries import EXAMPLES, load  # noqa: E402

FOLDER = EXAMPLES / "table1"
tasks = load(FOLDER, "tasks", tp)
SMALL = {
    "alexnet": {"batch": 4},
    "vgg19": {"batch": 4, "side": 32},
    "resnet50": {"batch": 8},
    "mobilenet": {"batch": 8},
    "gnmt": {"batch": 8},
    "ncf": {},
}
WEIGHTS = {  # those that the papers' authors, torchvision's pages and MLPerf's logs name
    "alexnet": 61_100_840,
    "vgg19": 143_667_240,
    "resnet50": 25_557_032,
    "mobilenet": 3_504_872,
    "gnmt": 159_593_523,
    "ncf": 31_832_577,
}
ENTRIES = {"alexnet": 16, "vgg19": 38, "resnet50": 320, "mobilenet": 314}
KEYS = {  # of torchvision's networks
    "alexnet": (
        "features.0.weight",
        "features.10.bias",
        "classifier.1.weight",
        "classifier.6.bias",
    ),
    "vgg19": ("features.0.weight", "features.34.bias", "classifier.0.weight", "classifier.6.bias"),
    "resnet50": (
        "conv1.weight",
        "bn1.running_mean",
        "layer1.0.downsample.0.weight",
        "layer1.0.downsample.1.num_batches_tracked",
        "layer3.5.conv2.weight",
        "layer4.2.bn3.bias",
        "fc.weight",
    ),
    "mobilenet": (
        "features.0.0.weight",
        "features.1.conv.1.weight",
        "features.1.conv.2.running_var",
        "features.2.conv.0.1.weight",
        "features.17.conv.2.weight",
        "features.18.1.bias",
        "classifier.1.weight",
    ),
}


def classes():
    gnmt, ncf = (load(FOLDER, name, tp) for name in ("gnmt", "ncf"))
    return tasks.IMAGE_MODELS | {"gnmt": gnmt.GNMT, "ncf": ncf.NeuMF}


@pytest.mark.parametrize("name", tasks.NAMES)
def test_published_number_of_weights(name):
    with tp.device("meta"):
        model = classes()[name]()
    assert sum(weight.numel() for weight in model.parameters()) == WEIGHTS[name]


@pytest.mark.parametrize("name", KEYS)
def test_keys_of_public_weights(name):
    with tp.device("meta"):
        keys = set(classes()[name]().state_dict())
    assert len(keys) == ENTRIES[name]
    assert not set(KEYS[name]) - keys


# Batch normalisation over few values and the bends of ReLU, many times in a row, make of what float32 rounds
# a few per cent of the gradient, in torch as here: those networks have a test of their own in float32.
AMPLIFYING = ("resnet50", "mobilenet")
CASES = [(name, "float64", 1e-8) for name in tasks.NAMES]
CASES += [(name, "float32", 1e-6) for name in tasks.NAMES if name not in AMPLIFYING]


@pytest.mark.parametrize(("name", "dtype", "tolerance"), CASES)
def test_three_steps_give_the_losses_of_torch(name, dtype, tolerance):
    torch = pytest.importorskip("torch", reason="torch is what the losses are compared with")
    theirs = load(FOLDER, "tasks", torch)
    assert theirs.nn is torch.nn
    # Dropout draws other numbers in the other library.
    mine, other = (module.make(name, dropout=0.0, **SMALL[name]) for module in (tasks, theirs))
    mine.model.to(getattr(tp, dtype))
    other.model.to(getattr(torch, dtype))
    weights = {key: torch.from_numpy(w.numpy()) for key, w in mine.model.state_dict().items()}
    other.model.load_state_dict(weights)
    for task in (mine, other):
        task.model.train()
    for _ in range(3):
        batch, expected_batch = next(mine.batches), next(other.batches)
        for ours, expected in zip(batch, expected_batch, strict=True):
            torch.testing.assert_close(torch.from_numpy(ours.numpy()), expected, atol=1e-6, rtol=0)
        batch = [x.to(getattr(tp, dtype)) if x.is_floating_point() else x for x in batch]
        loss = tasks.step(mine, batch).item()
        expected = theirs.step(other, [torch.from_numpy(x.numpy()) for x in batch]).item()
        assert loss == pytest.approx(expected, rel=tolerance)
    for key, expected in other.model.state_dict().items():
        weight = torch.from_numpy(mine.model.state_dict()[key].numpy())
        near = 1e-6 if dtype == "float64" else 1e-4  # one step of Adam moves by 1e-3 to 1e-2
        torch.testing.assert_close(weight, expected, atol=near, rtol=near, msg=key)


def smoothed(model, nn):
    """Put a smooth layer for each that bends: on which side of a bend a rounded number falls is chance."""
    for module in list(model.modules()):
        for key, layer in list(module.named_children()):
            if isinstance(layer, (nn.ReLU, nn.ReLU6)):
                setattr(module, key, nn.SiLU())
            elif isinstance(layer, nn.MaxPool2d):
                setattr(module, key, nn.AvgPool2d(layer.kernel_size, layer.stride, layer.padding))


@pytest.mark.parametrize("name", AMPLIFYING)
def test_float32_is_as_near_to_float64_as_torchs(name):
    torch = pytest.importorskip("torch", reason="torch is what the gradients are compared with")
    theirs = load(FOLDER, "tasks", torch)
    task = tasks.make(name, dropout=0.0, **SMALL[name])
    weights = {key: torch.from_numpy(w.numpy()) for key, w in task.model.state_dict().items()}
    images, labels = (torch.from_numpy(x.numpy()) for x in next(task.batches))

    def step(module, images, convert, dtype):
        """Return the loss and, in one row, the gradients of every weight."""
        task = module.make(name, dropout=0.0, **SMALL[name])
        smoothed(task.model, module.nn)
        task.model.to(dtype).load_state_dict({key: convert(w) for key, w in weights.items()})
        task.model.train()
        loss = module.step(task, (convert(images), convert(labels))).item()
        gradients = [torch.from_numpy(w.grad.numpy()) for w in task.model.parameters()]
        return loss, torch.cat([gradient.double().flatten() for gradient in gradients])

    # How one run's errors add up is chance, so a few are looked at, with images that differ in the last bits.
    ours, others = [], []
    for seed in range(3):
        generator = torch.Generator().manual_seed(seed)
        nudged = images * (1 + 2e-7 * torch.randn(images.shape, generator=generator))
        loss, exact = step(
            theirs, nudged, lambda x: x.double() if x.is_floating_point() else x, torch.float64
        )
        found, gradient = step(tasks, nudged, lambda x: tp.from_numpy(x.numpy().copy()), tp.float32)
        assert found == pytest.approx(loss, rel=1e-6)
        ours.append(((gradient - exact).norm() / exact.norm()).item())
        _, gradient = step(theirs, nudged, torch.clone, torch.float32)
        others.append(((gradient - exact).norm() / exact.norm()).item())
    assert max(ours) < 3 * max(others), (ours, others)


@pytest.mark.parametrize("name", tasks.NAMES)
def test_program_trains(name):
    command = [sys.executable, str(FOLDER / "train.py"), name, "--steps", "2"]
    small = [f"--{option}={value}" for option, value in SMALL[name].items()]
    run = subprocess.run(
        [*command, *small], capture_output=True, text=True, timeout=300, check=False
    )
    assert run.returncode == 0, run.stderr
    found = re.search(r"loss ([\d.]+) at first, ([\d.]+) at last; [\d.]+ \w+s a second", run.stdout)
    assert found, run.stdout


@pytest.mark.parametrize("name", ["gnmt", "ncf"])
def test_losses_fall(name):
    task = tasks.make(name, batch=None if name == "ncf" else 16)
    losses = [
        tasks.step(task, next(task.batches)).item() for _ in range(100 if name == "ncf" else 15)
    ]
    assert losses[-1] < 0.9 * losses[0]


def test_unknown_model_is_said():
    with pytest.raises(ValueError, match="'lenet'; there are alexnet, vgg19"):
        tasks.make("lenet")


def test_numbers_in_words():
    samples = load(FOLDER, "samples", tp)
    assert " ".join(samples.spell(0)) == "zero"
    assert " ".join(samples.spell(19)) == "nineteen"
    assert " ".join(samples.spell(90)) == "ninety"
    assert " ".join(samples.spell(40_312)) == "forty thousand three hundred twelve"
    assert " ".join(samples.spell(999_999)) == (
        "nine hundred ninety nine thousand nine hundred ninety nine"
    )


def test_sentences_are_translations():
    samples = load(FOLDER, "samples", tp)
    words = {token: word for word, token in samples.TOKENS.items()}
    source, target = next(samples.sentences(4, 12, seed=0, device="cpu"))
    for digits, spelled in zip(source.tolist(), target.tolist(), strict=True):
        tokens = [token for token in spelled if token != samples.PADDING]
        assert (tokens[0], tokens[-1]) == (samples.BEGIN, samples.END)
        said = [words[token] for token in tokens[1:-1]]
        text = "".join(words[token] for token in digits if token != samples.PADDING)
        # Spelling leaves open where a number ends, so the numbers are read off the words again.
        assert any(said == spelled for spelled in _readings(samples, text))


def _readings(samples, text):
    if not text:
        yield []
    for length in range(1, min(6, len(text)) + 1):
        if length == 1 or text[0] != "0":
            for rest in _readings(samples, text[length:]):
                yield samples.spell(int(text[:length])) + rest


def test_a_fifth_is_liked():
    samples = load(FOLDER, "samples", tp)
    *_, liked = next(samples.ratings(20_000, 500, 300, seed=0, device="cpu"))
    assert 0.15 < liked.mean().item() < 0.25


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["lenet"], "invalid choice: 'lenet'"),
        (["ncf", "--steps", "0"], "--steps must be at least 1, got 0"),
        (["ncf", "--device", "nonsense"], "nonsense"),
    ],
)
def test_bad_input_ends_with_a_message(arguments, message, capsys):
    program = load(FOLDER, "train", tp)
    with pytest.raises(SystemExit) as stopped:
        program.main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_loading_leaves_no_trace():
    before = set(sys.modules)
    assert load(FOLDER, "tasks", tp) is not tasks
    assert "tasks" not in set(sys.modules) - before
    assert sys.modules["tensorplug"] is tp
    assert str(FOLDER) not in sys.path
