"""The networks of the model suite compute what they compute in torch."""

import sys
from pathlib import Path

import pytest
from benchmarks.libraries import load

import tensorplug as tp

FOLDER = Path(__file__).parents[2] / "benchmarks"
networks = load(FOLDER, "networks", tp)


@pytest.mark.parametrize("name", networks.NAMES)
def test_three_steps_give_the_losses_of_torch(name):
    torch = pytest.importorskip("torch", reason="torch is what the losses are compared with")
    theirs = load(FOLDER, "networks", torch)
    mine, other = (module.make(name) for module in (networks, theirs))
    mine.model.to(tp.float64)
    other.model.to(torch.float64)
    other.model.load_state_dict(
        {key: torch.from_numpy(weight.numpy()) for key, weight in mine.model.state_dict().items()}
    )
    for _ in range(3):
        losses = []
        for task, dtype in ((mine, tp.float64), (other, torch.float64)):
            batch = [x.to(dtype) if x.is_floating_point() else x for x in next(task.batches)]
            task.optimizer.zero_grad()
            loss = task.loss(task.model, batch)
            loss.backward()
            task.optimizer.step()
            losses.append(loss.item())
        assert losses[0] == pytest.approx(losses[1], rel=1e-10)


def test_weights_of_vit_small_and_the_names_of_timm():
    with tp.device("meta"):
        model = networks.ViT(224, 16, 384, 12, 6)
        block = networks.Block(384, 6, causal=False)
    assert sum(weight.numel() for weight in model.parameters()) > 12 * sum(
        weight.numel() for weight in block.parameters()
    )
    assert {"cls_token", "pos_embed", "patch_embed.proj.weight", "norm.weight", "head.bias"} < set(
        model.state_dict()
    )


def test_unknown_network_is_said():
    with pytest.raises(ValueError, match="'lenet'; there are vit, gpt, mlp"):
        networks.make("lenet")


def test_standing_in_leaves_no_trace():
    torch = pytest.importorskip("torch", reason="torch stands in")
    before = dict(sys.modules)
    module = load(FOLDER, "networks", torch)
    assert module.tp is torch
    assert module.F is torch.nn.functional
    assert sys.modules["tensorplug"] is tp
    assert "networks" not in sys.modules
    gone = [name for name in before if name not in sys.modules]
    assert not gone


def test_module_that_fails_leaves_no_trace(tmp_path):
    (tmp_path / "broken.py").write_text(
        "import tensorplug\nraise OSError('why')\n", encoding="utf-8"
    )
    stand_in = type(sys)("stand_in")
    with pytest.raises(OSError, match="why"):
        load(tmp_path, "broken", stand_in)
    assert sys.modules["tensorplug"] is tp
    assert "broken" not in sys.modules
    assert str(tmp_path) not in sys.path
