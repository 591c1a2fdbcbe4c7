"""The GAN, the VAE and the policy: steps as under torch, what a short run reaches, and the cart."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tensorplug as tp

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT))  # the benchmarks aren't installed

from benchmarks.libraries import EXAMPLES, load  # noqa: E402

gan, vae, reinforce = (load(EXAMPLES / name, "train", tp) for name in ("gan", "vae", "reinforce"))
cartpole = load(EXAMPLES / "reinforce", "cartpole", tp)


def run_quick(name, folder, *arguments):
    program = EXAMPLES / name / "train.py"
    command = [sys.executable, str(program), "--quick", "--out", str(folder), *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    assert (folder / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    return run.stdout


def copy_weights(source, target, torch):
    weights = {key: torch.from_numpy(w.numpy()) for key, w in source.state_dict().items()}
    target.load_state_dict(weights)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is what the losses are compared with")


def test_gan_steps_are_those_of_torch(torch):
    theirs = load(EXAMPLES / "gan", "train", torch)
    tp.manual_seed(0)
    mine, other = gan.make(), theirs.make()
    for ours, network in zip(mine[:2], other[:2], strict=True):
        copy_weights(ours, network, torch)
    for players in (mine, other):  # dropout draws other numbers in the other library
        for module in players.discriminator:
            if "Dropout" in type(module).__name__:
                module.p = 0.0
    images, _ = gan.read_digits()
    for number in range(20):
        real, noise = images[number * 32 :][:32], tp.randn(32, gan.NOISE)
        found = gan.step(mine, real, noise)
        expected = theirs.step(
            other, torch.from_numpy(real.numpy()), torch.from_numpy(noise.numpy())
        )
        assert found == pytest.approx(expected, rel=2e-4)


@pytest.mark.slow
def test_gan_draws_digits(tmp_path):
    out = run_quick("gan", tmp_path)
    found = re.search(r"digit ([\d.]+) \(noise: ([\d.]+)\), (\d+) of 10 digits drawn", out)
    assert float(found[1]) < float(found[2]) / 2
    assert int(found[3]) >= 5


def test_vae_steps_are_those_of_torch(torch):
    theirs = load(EXAMPLES / "vae", "train", torch)
    tp.manual_seed(0)
    mine, other = vae.VAE(), theirs.VAE()
    copy_weights(mine, other, torch)
    optimizers = tp.optim.Adam(mine.parameters()), torch.optim.Adam(other.parameters())
    images, _ = vae.read_digits()
    for number in range(20):
        batch, noise = images[number * 32 :][:32], tp.randn(32, 8)
        found = vae.step(mine, optimizers[0], batch, noise)
        expected = theirs.step(
            other, optimizers[1], torch.from_numpy(batch.numpy()), torch.from_numpy(noise.numpy())
        )
        assert found == pytest.approx(expected, rel=1e-5)


@pytest.mark.slow
def test_vae_learns_digits(tmp_path):
    out = run_quick("vae", tmp_path)
    found = re.search(r"test loss ([\d.]+) at first, ([\d.]+) at last", out)
    assert float(found[2]) < 27 < float(found[1])  # 24.3 after 100 epochs


def test_cart_moves_by_the_published_equations():
    generator = tp.Generator().manual_seed(0)
    states = tp.randn(50, 4, generator=generator, dtype=tp.float64) * 0.1
    actions = tp.randint(0, 2, (50,), generator=generator)
    found, up = cartpole.advance(states, actions)
    for row, action, later, still in zip(
        states.tolist(), actions.tolist(), found.tolist(), up.tolist(), strict=True
    ):
        x, v, a, w = row
        # the two equations of motion as a linear system in the accelerations
        mass, pole, half, g = 1.0, 0.1, 0.5, 9.8
        force = 10.0 if action else -10.0
        matrix = [
            [mass + pole, pole * half * math.cos(a)],
            [math.cos(a), 4 / 3 * half],
        ]
        right = [force + pole * half * w * w * math.sin(a), g * math.sin(a)]
        acceleration, turn = np.linalg.solve(matrix, right)
        expected = [x + 0.02 * v, v + 0.02 * acceleration, a + 0.02 * w, w + 0.02 * turn]
        assert later == pytest.approx(expected, abs=1e-12)
        assert still == (abs(later[0]) <= 2.4 and abs(later[2]) <= math.radians(12))


def test_returns_stop_where_the_episode_does():
    alive = tp.tensor([[1.0, 1.0], [1.0, 0.0], [1.0, 0.0]])
    expected = [[1 + 0.99 + 0.99**2, 1.0], [1.99, 0.0], [1.0, 0.0]]
    np.testing.assert_allclose(reinforce.discounted(alive).numpy(), expected, rtol=1e-6)


def test_policy_gradient_is_that_of_torch(torch):
    theirs = load(EXAMPLES / "reinforce", "train", torch)
    tp.manual_seed(0)
    mine, other = reinforce.Agent(), theirs.Agent()
    copy_weights(mine, other, torch)
    episodes = reinforce.play(mine, 4, tp.Generator().manual_seed(0))
    copied = theirs.Episodes(*(torch.from_numpy(part.numpy()) for part in episodes))
    found, expected = reinforce.loss(mine, episodes), theirs.loss(other, copied)
    assert found.item() == pytest.approx(expected.item(), abs=1e-6)
    found.backward()
    expected.backward()
    for (name, weight), same in zip(mine.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(
            torch.from_numpy(weight.grad.numpy()), same.grad, atol=1e-6, rtol=1e-4, msg=name
        )


@pytest.mark.slow
def test_policy_balances_the_pole(tmp_path):
    out = run_quick("reinforce", tmp_path)
    found = re.search(r"mean return (\d+) at first, (\d+) in 100 new episodes", out)
    assert int(found[1]) < 60
    assert int(found[2]) >= 300  # the whole run reaches 475 to 500


@pytest.mark.parametrize(
    ("example", "arguments", "message"),
    [
        (gan, ["--epochs", "0"], "--epochs must be at least 1, got 0"),
        (vae, ["--latent", "0"], "--latent must be at least 1, got 0"),
        (reinforce, ["--updates", "0"], "--updates must be at least 1, got 0"),
        (gan, ["--device", "nonsense"], "nonsense"),
        (vae, ["--device", "nonsense"], "nonsense"),
        (reinforce, ["--device", "nonsense"], "nonsense"),
    ],
)
def test_bad_input_ends_with_a_message(example, arguments, message, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        example.main([*arguments, "--out", str(tmp_path)])
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err
