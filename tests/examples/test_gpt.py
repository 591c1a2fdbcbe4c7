"""The GPT on Paradise Lost: losses as torch's, resuming, sampling, and the names of public weights."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

import tensorplug as tp

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks aren't installed

from benchmarks.libraries import EXAMPLES, load  # noqa: E402

FOLDER = EXAMPLES / "gpt"
train = load(FOLDER, "train", tp)
TINY = {"vocabulary": 62, "context": 16, "layers": 2, "heads": 2, "width": 16, "dropout": 0.0}
SIZE = "--layers=2 --heads=2 --width=16 --context=16 --batch=4 --every=4 --write=5"


@pytest.fixture(scope="module")
def text():
    return train.Text()


def make_tiny(seed=0):
    tp.manual_seed(seed)
    return train.GPT(train.Config(**TINY))


@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-11), ("float32", 1e-5)])
def test_losses_fall_as_those_of_torch(text, dtype, tolerance):
    torch = pytest.importorskip("torch", reason="torch is what the losses are compared with")
    theirs = load(FOLDER, "train", torch)
    model = make_tiny().to(getattr(tp, dtype))
    other = theirs.GPT(theirs.Config(**TINY)).to(getattr(torch, dtype))
    weights = {key: torch.from_numpy(w.numpy()) for key, w in model.state_dict().items()}
    other.load_state_dict(weights)
    generator = tp.Generator().manual_seed(1)
    both = [(train, model), (theirs, other)]
    optimizers = [module.make_optimizer(network, 2e-3) for module, network in both]
    schedules = [
        module.make_schedule(optimizer, 40, 5)
        for (module, _), optimizer in zip(both, optimizers, strict=True)
    ]
    losses = []
    for _ in range(40):
        batch = train.draw(text.training, 8, 16, generator)
        loss = train.step(model, optimizers[0], *batch)
        expected = theirs.step(other, optimizers[1], *(torch.from_numpy(x.numpy()) for x in batch))
        assert loss == pytest.approx(expected, rel=tolerance)
        losses.append(loss)
        for schedule in schedules:
            schedule.step()
    assert losses[-1] < losses[0] - 0.5


def test_resumed_run_goes_on_bit_by_bit(tmp_path, capsys):
    common = [*SIZE.split(), "--dropout", "0.2", "--steps", "12"]
    whole, part = tmp_path / "whole", tmp_path / "part"
    assert train.main([*common, "--out", str(whole)]) == 0
    options = train.parse([*common, "--out", str(part)])
    stopped = train.Run(options, train.Text())
    stopped.train(5)
    tp.manual_seed(99)  # whatever else drew numbers in between
    resumed = [*common, "--seed", "3", "--resume", str(part / "gpt.pt"), "--out", str(part)]
    assert train.main(resumed) == 0
    one, other = (tp.load(folder / "gpt.pt") for folder in (whole, part))
    assert one["losses"] == other["losses"]
    assert len(one["losses"]) == 12
    for key, weight in one["model"].items():
        assert tp.equal(weight, other["model"][key]), key
    for number, state in one["optimizer"]["state"].items():
        assert tp.equal(state["exp_avg_sq"], other["optimizer"]["state"][number]["exp_avg_sq"])
    assert "7 steps in" in capsys.readouterr().out


def test_schedule_rises_and_falls():
    weight = tp.nn.Parameter(tp.zeros(1))
    optimizer = tp.optim.SGD([weight], lr=1.0)
    schedule = train.make_schedule(optimizer, steps=20, warmup=4)
    rates = []
    for _ in range(25):
        rates.append(schedule.get_last_lr()[0])
        optimizer.step()
        schedule.step()
    assert rates[:5] == pytest.approx([0.25, 0.5, 0.75, 1.0, 1.0])
    assert rates[12] == pytest.approx(0.55)
    assert rates[20:] == pytest.approx([0.1] * 5)
    assert rates[4:21] == sorted(rates[4:21], reverse=True)


def test_no_position_sees_a_later_one():
    model = make_tiny().eval()
    tokens = tp.randint(0, 62, (1, 16), generator=tp.Generator().manual_seed(0))
    changed = tokens.clone()
    changed[0, 9] = (changed[0, 9] + 1) % 62
    before, after = model(tokens), model(changed)
    assert tp.equal(before[:, :9], after[:, :9])
    assert not tp.isclose(before[:, 9:], after[:, 9:]).all(dim=2).any()


def test_sampling():
    model = make_tiny()
    start = tp.tensor([[1, 2, 3]])
    greedy = model.sample(start, 30, temperature=0)
    assert greedy.shape == (1, 33)
    assert tp.equal(greedy[:, :3], start)
    assert tp.equal(greedy, model.sample(start, 30, top_k=1))
    draws = [model.sample(start, 30, generator=tp.Generator().manual_seed(s)) for s in (5, 5, 6)]
    assert tp.equal(draws[0], draws[1])
    assert not tp.equal(draws[0], draws[2])
    likeliest = set(model(start)[0, -1].topk(3).indices.tolist())
    seen = {model.sample(start, 1, 2.0, top_k=3)[0, -1].item() for _ in range(40)}
    assert seen == likeliest


def test_names_and_number_of_the_public_weights():
    with tp.device("meta"):
        model = train.GPT(train.Config())
    shapes = {key: tuple(weight.shape) for key, weight in model.state_dict().items()}
    assert sum(weight.numel() for weight in model.parameters()) == 124_439_808
    assert len(shapes) == 4 + 12 * 12
    assert shapes["wte.weight"] == (50257, 768)
    assert shapes["h.11.attn.c_attn.weight"] == (768, 2304)
    assert shapes["h.0.mlp.c_proj.weight"] == (3072, 768)
    assert {"wpe.weight", "h.3.ln_2.bias", "h.5.attn.c_proj.bias", "ln_f.weight"} <= set(shapes)


@pytest.mark.parametrize("prefix", ["", "transformer."])
def test_public_files_load(prefix):
    model, other = make_tiny(0), make_tiny(1)
    public = {prefix + key: weight for key, weight in other.state_dict().items()}
    public["lm_head.weight"] = other.wte.weight
    for number in range(2):
        public[f"{prefix}h.{number}.attn.bias"] = tp.ones(1, 1, 16, 16).tril()
    model.load_gpt2(public)
    tokens = tp.tensor([[4, 5, 6]])
    assert tp.equal(model(tokens), other(tokens))
    del public[f"{prefix}h.1.mlp.c_fc.weight"]
    with pytest.raises(RuntimeError, match=r"h\.1\.mlp\.c_fc\.weight"):
        model.load_gpt2(public)


def test_text(text):
    assert len(text.alphabet) == 62
    assert len(text.training) + len(text.validation) == 21_007
    line = "Sing, Heavenly Muse"
    assert text.decode(text.encode(line)) == line
    with pytest.raises(ValueError, match="Ж"):
        text.encode("Ж")
    tokens, targets = train.draw(text.training, 3, 10, tp.Generator().manual_seed(0))
    assert tokens.shape == (3, 10)
    assert tp.equal(tokens[:, 1:], targets[:, :-1])


@pytest.mark.slow
def test_program(tmp_path):
    command = [sys.executable, str(FOLDER / "train.py"), "--quick", "--out", str(tmp_path)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    found = re.search(r"loss ([\d.]+) at first, ([\d.]+) on held-out text at last", run.stdout)
    assert float(found[2]) < 3.3 < 4.0 < float(found[1])  # guessing gives ln 62 = 4.13
    assert "\nOf Man's first" in run.stdout
    assert (tmp_path / "gpt.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--width", "30", "--heads", "4"], "--width 30 is no multiple of --heads 4"),
        (["--steps", "0"], "--steps must be at least 1, got 0"),
        (["--device", "nonsense"], "nonsense"),
        (["--top-k", "0"], "--top-k must be at least 1, got 0"),
    ],
)
def test_bad_input_ends_with_a_message(arguments, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        train.main([*arguments, "--out", str(tmp_path)])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


def test_prompt_of_unknown_characters(tmp_path, capsys):
    assert train.main(["--prompt", "Ж", "--out", str(tmp_path)]) == 2
    assert "Ж" in capsys.readouterr().err
