"""Programs that import torch, run on tensorplug; each in a process of its own."""

import multiprocessing
import subprocess
import sys
import textwrap

import pytest

from tensorplug import compat


def run(tmp_path, program, *arguments, module=None, check=True):
    """Run a program through the command; return what it printed, or the last line of its error."""
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    what = [str(path)] if module is None else ["-m", module]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "tensorplug.compat", *what, *arguments],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    if check:
        assert done.returncode == 0, done.stderr
        return done.stdout
    assert done.returncode != 0
    return done.stderr.strip().splitlines()[-1]


IMPORTS = """
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
import torch.utils.checkpoint
from torch import Tensor, einsum
from torch.autograd import Function, Variable
from torch.backends import cudnn
from torch.nn import Linear, functional
from torch.nn.modules.conv import Conv2d
from torch.nn.modules.instancenorm import InstanceNorm1d
from torch.nn.modules.utils import _pair
from torch.nn.utils import clip_grad_norm_
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import StepLR
from torch.utils.data import DataLoader, Dataset, TensorDataset
from torch.utils.data.dataloader import DataLoader as Loader
from torch.utils.data.dataset import Subset
from torch.utils.data.sampler import SequentialSampler

import tensorplug as tp

assert torch.__version__.startswith("2.") and torch.version.cuda is None
assert Tensor is tp.Tensor and torch.float32 is tp.float32
assert nn.Linear is Linear is tp.nn.Linear and F.relu is functional.relu is tp.nn.functional.relu
assert Loader is DataLoader is tp.data.DataLoader and Conv2d is nn.Conv2d
assert torch.nn is nn and torch.optim is optim and sys.modules["torch.nn"] is nn
assert {"Linear", "Module"} <= set(dir(nn)) and {"compile", "zeros"} <= set(dir(torch))
assert not torch.cuda.is_available()
assert torch.compile(nn.Linear(2, 1))(torch.ones(1, 2)).shape == (1, 1)
assert Variable(torch.ones(1), requires_grad=True).requires_grad
cudnn.benchmark = True
assert torch.backends.cudnn.benchmark
assert InstanceNorm1d is nn.InstanceNorm1d and _pair(3) == _pair([3, 3]) == (3, 3)
assert torch.nn.modules.activation.MultiheadAttention is nn.MultiheadAttention


@torch.jit.script
def double(x):
    return 2 * x


@torch.compile(dynamic=True)
def triple(x):
    return 3 * x


assert (double(torch.ones(1)) + triple(torch.ones(1))).item() == 5
torch.set_default_tensor_type("torch.DoubleTensor")
assert torch.zeros(1).dtype is torch.float64
for kind in (torch.float32, "torch.IntTensor", 1):
    try:
        torch.set_default_tensor_type(kind)
    except TypeError:
        continue
    raise AssertionError(kind)
assert torch.utils.data._utils.collate.default_collate is torch.utils.data.default_collate
assert callable(torch.nn.grad.conv2d_input) and torch.GradScaler is torch.amp.GradScaler
print(__name__, sys.argv[1:])
"""


def test_the_usual_imports(tmp_path):
    assert run(tmp_path, IMPORTS, "a", "-m", "b") == "__main__ ['a', '-m', 'b']\n"


TRAINING = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from helper import SIZE

torch.manual_seed(0)
x = torch.linspace(-1, 1, SIZE).unsqueeze(1)
loader = DataLoader(TensorDataset(x, 3 * x + 1), batch_size=16, shuffle=True, num_workers=1)
model = nn.Linear(1, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for _ in range(20):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
torch.save(model.state_dict(), "model.pt")
print(round(model.weight.item(), 3), round(model.bias.item(), 3))
"""


def test_a_program_trains_with_a_module_beside_it(tmp_path):
    (tmp_path / "helper.py").write_text("import torch\nSIZE = torch.tensor(64).item()\n")
    assert run(tmp_path, TRAINING) == "3.0 1.0\n"
    assert (tmp_path / "model.pt").exists()


SPAWNING = """
import sys

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info


class Squares(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        assert get_worker_info() is not None and torch.__version__.endswith("+tensorplug")
        return torch.tensor(float(index)) ** 2


def collate(samples):
    import torch.nn.functional as F

    return F.relu(torch.stack(samples))


if __name__ == "__main__":
    loader = DataLoader(
        Squares(), 4, num_workers=2, collate_fn=collate, multiprocessing_context=sys.argv[1]
    )
    print([batch.tolist() for batch in loader])
"""


@pytest.mark.slow
@pytest.mark.parametrize("how", ["spawn", "forkserver", "fork"])
@pytest.mark.parametrize("module", [None, "program"])
def test_workers_import_torch_however_they_are_started(tmp_path, how, module):
    if how not in multiprocessing.get_all_start_methods():
        pytest.skip(f"this system cannot start processes by {how}")
    expected = "[[0.0, 1.0, 4.0, 9.0], [16.0, 25.0, 36.0, 49.0]]\n"
    assert run(tmp_path, SPAWNING, how, module=module) == expected


@pytest.mark.slow
def test_a_process_spawned_after_uninstalling_knows_nothing(tmp_path):
    program = """
    import multiprocessing, sys
    from tensorplug import compat


    def names():
        return any("compat" in type(finder).__module__ for finder in sys.meta_path)


    if __name__ == "__main__":
        context = multiprocessing.get_context("spawn")
        with compat.install(), context.Pool(1) as pool:
            print(pool.apply(names))
        with context.Pool(1) as pool:
            print(pool.apply(names))
    """
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    done = subprocess.run(
        [sys.executable, str(path)], capture_output=True, text=True, check=False, timeout=120
    )
    assert done.stdout == "True\nFalse\n", done.stderr


def test_a_module_is_run_by_name(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "part.py").write_text("import torch, sys; print(torch.ones(2), sys.argv[1:])")
    assert run(tmp_path, "", "x", module="package.part") == "tensor([1., 1.]) ['x']\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("import torch.nosuch", "ModuleNotFoundError: No module named 'torch.nosuch'"),
        ("import torch.nn.nosuch", "ModuleNotFoundError: No module named 'torch.nn.nosuch'"),
        ("import torch.nn.Linear", "ModuleNotFoundError: No module named 'torch.nn.Linear'"),
        ("from torch import nosuch", "ImportError: cannot import name 'nosuch' from 'torch'"),
        ("from torch.nn import NoSuch", "ImportError: cannot import name 'NoSuch' from 'torch.nn'"),
        (
            "from torch.nn.modules import NoSuch",
            "ImportError: cannot import name 'NoSuch' from 'torch.nn.modules'",
        ),
        (
            "import torch; torch.nosuch",
            "AttributeError: tensorplug has no counterpart of torch.nosuch",
        ),
        (
            "import torch; torch.nn.functional.nosuch",
            "AttributeError: tensorplug has no counterpart of torch.nn.functional.nosuch",
        ),
        (
            "import torch.distributed; torch.distributed.barrier()",
            "ValueError: Default process group has not been initialized",
        ),
    ],
)
def test_what_is_missing_is_named(tmp_path, line, error):
    assert run(tmp_path, line, check=False).startswith(error)


def test_tensorboard_is_said_to_keep_nothing_without_its_package(tmp_path):
    program = """
    import sys, warnings
    sys.modules["tensorboardX"] = None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from torch.utils.tensorboard import SummaryWriter
        with SummaryWriter("runs") as writer:
            writer.add_scalar("loss", 1.0, 2)
        assert "not kept" in str(caught[0].message)
    from unittest.mock import Mock
    from torch.utils.tensorboard import writer as file
    assert file.SummaryWriter is SummaryWriter
    Mock(spec=SummaryWriter).add_scalar("loss", 1.0)
    """
    run(tmp_path, program)


def test_tensorboard_is_written(tmp_path):
    pytest.importorskip("tensorboardX", reason="it writes the files")
    program = f"""
    import os
    import torch
    from torch.utils.tensorboard import SummaryWriter
    with SummaryWriter({str(tmp_path / "runs")!r}) as writer:
        writer.add_scalar("loss", torch.ones(()), 2)
    from torch.utils.tensorboard import summary, writer as file
    assert file.SummaryWriter is SummaryWriter
    assert callable(summary.hparams)
    assert len(os.listdir({str(tmp_path / "runs")!r})) == 1
    """
    run(tmp_path, program)


def test_install_and_uninstall(tmp_path):
    program = """
    import sys
    from tensorplug import compat
    for _ in range(2):
        with compat.install():
            compat.install()
            import torch
            from torch import nn
            assert torch.nn is nn
        assert not [name for name in sys.modules if name.split(".")[0] == "torch"]
    """
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(program))
    subprocess.run([sys.executable, str(path)], check=True)


def test_torch_itself_is_not_replaced(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.raises(RuntimeError, match="already imported"):
        compat.install()


def test_the_namespace_without_installing():
    assert compat.torch.nn.Linear.__module__.startswith("tensorplug.")
    with pytest.raises(AttributeError, match="nosuch"):
        compat.nosuch  # noqa: B018


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-m"]])
def test_the_command_says_how_it_is_used(arguments):
    done = subprocess.run(
        [sys.executable, "-m", "tensorplug.compat", *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("usage: python -m tensorplug.compat")


def test_settings_are_patched_and_set_back(tmp_path):
    run(
        tmp_path,
        """
        from unittest import mock

        import torch

        with mock.patch("torch._dynamo.config.suppress_errors", "patched"):
            assert torch._dynamo.config.suppress_errors == "patched"
        assert torch._dynamo.config.suppress_errors != "patched"
        with mock.patch("torch.nn.functional.relu", "patched"):
            assert torch.nn.functional.relu == "patched"
        assert torch.nn.functional.relu(torch.tensor(-1.0)) == 0
        """,
    )


@pytest.mark.parametrize(
    "kind",
    [
        "forward", "forward_pre", "backward", "backward_pre", "buffer_registration",
        "module_registration", "parameter_registration",
    ],
)  # fmt: skip
def test_hooks_of_all_modules_are_reached(tmp_path, kind):
    register = {"backward": "full_backward", "backward_pre": "full_backward_pre"}.get(kind, kind)
    out = run(
        tmp_path,
        f"""
        import torch
        from torch.nn.modules import module
        from torch.nn.modules.module import _global_{kind}_hooks as hooks

        called = []

        def call():
            model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))
            model(torch.ones(3, 2, requires_grad=True)).sum().backward()
            number = len(called)
            called.clear()
            return number > 0

        handle = module.register_module_{register}_hook(lambda *args: called.append(1))
        print(handle.id in hooks, call(), end=" ")
        hooks.clear()
        print(call(), end=" ")
        hooks[-1] = lambda *args: called.append(1)
        print(module._global_{kind}_hooks is hooks, call(), end=" ")
        module._global_{kind}_hooks = type(hooks)()  # as torch's own tests forget hooks
        print(call(), end=" ")
        module.register_module_{register}_hook(lambda *args: called.append(1))
        print(call())
        """,
    )
    assert out.split() == ["True", "True", "False", "True", "True", "False", "True"]
