"""How libraries find out whether torch is there and which it is; each program in a process of its own."""

import operator
import subprocess
import sys
import textwrap

import pytest


def run(program):
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "from tensorplug import compat; compat.install()\n"
         + textwrap.dedent(program)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_specs_of_modules_however_often_asked():
    run("""
    import importlib.util, sys
    for _ in range(2):
        for name in ("torch", "torch.nn", "torch.nn.functional", "torch.distributed", "torch.cuda.amp"):
            spec = importlib.util.find_spec(name)
            assert spec.name == name and spec.loader is not None, name
            importlib.import_module(name)
            assert sys.modules[name].__spec__ is spec, name
        for name in ("torch.nope", "torch.nn.nope", "torch.nope_too"):
            assert importlib.util.find_spec(name) is None, name
            assert name not in sys.modules
    import torch
    assert all(m.__spec__.name == n for n, m in sys.modules.items() if n.partition(".")[0] == "torch")
    """)


def test_packages_beside_torch_are_left_to_python():
    run("""
    import importlib.util
    import importlib.machinery
    for name in ("torchvision", "torchaudio", "torchtext", "torchnosuch"):
        by_path = importlib.machinery.PathFinder.find_spec(name)
        assert (importlib.util.find_spec(name) is None) == (by_path is None), name
    """)


def test_the_distribution():
    run("""
    import importlib.metadata as metadata
    import torch
    assert metadata.version("torch") == metadata.version("Torch") == torch.__version__
    found = metadata.distribution("torch")
    assert found.metadata["Name"] == "torch" and found.version.startswith("2.")
    assert not found.requires and not list(found.entry_points)
    assert "torch" in metadata.packages_distributions()["torch"]
    assert next(d.version for d in metadata.distributions() if d.name == "torch") == torch.__version__
    assert metadata.version("numpy") and metadata.version("tensorplug")
    try:
        metadata.version("torch-nosuch")
    except metadata.PackageNotFoundError:
        pass
    else:
        raise AssertionError
    compat.uninstall()
    assert not any(type(d).__name__ == "TorchDistribution" for d in metadata.distributions())
    """)


def test_the_version_compares_by_its_numbers():
    run("""
    import torch
    from torch.torch_version import TorchVersion
    assert isinstance(torch.__version__, TorchVersion) and isinstance(torch.__version__, str)
    assert torch.__version__ >= (2, 5) and torch.__version__ > "2.9" and torch.__version__ < "10.0"
    """)


VERSIONS = [
    "2.13.0+cpu",
    "2.13.0",
    "2.9.1",
    "2.10",
    "2.13.0a0",
    "2.13.0.dev20250101",
    "2.13.0rc1",
    "10",
    "2.13.1",
]
OTHERS = [*VERSIONS, (2, 13), (2, 9), (10,), (2, 13, 0), "not a version"]


@pytest.mark.parametrize("version", VERSIONS)
def test_versions_as_torch_compares_them(version):
    torch_version = pytest.importorskip("torch.torch_version", reason="torch has the answers")
    from tensorplug.torch_version import TorchVersion

    ours, theirs = TorchVersion(version), torch_version.TorchVersion(version)
    for other in OTHERS:
        for compare in (operator.lt, operator.le, operator.eq, operator.ge, operator.gt):
            expected = compare(theirs, other)
            assert compare(ours, other) == expected, (version, compare, other)
        assert (ours != other) == (not ours == other)  # noqa: SIM201  # torch's own disagree


def test_the_environment_of_libraries():
    run("""
    import sys
    import torch
    import torch.nn.parallel
    from torch.nn.parallel import DistributedDataParallel
    from torch.nn.parallel.distributed import DistributedDataParallel as Same

    model = torch.nn.Linear(2, 1)
    assert isinstance(DistributedDataParallel, type) and isinstance(Same, type)
    assert not isinstance(model, (DistributedDataParallel, torch.jit.ScriptModule))
    assert DistributedDataParallel | None
    try:
        DistributedDataParallel(model)
    except ValueError as error:
        assert "init_process_group" in str(error)
    else:
        raise AssertionError
    assert not torch.distributed.is_initialized()
    default = torch.distributed.ReduceOp.SUM
    """)


COMPILED = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
compiled = torch.compile(model)
x = torch.ones(1, 2)
assert compiled._orig_mod is model and isinstance(compiled, nn.Module)
assert isinstance(compiled, torch._dynamo.eval_frame.OptimizedModule)
assert torch.equal(compiled(x), model(x))
assert list(compiled.state_dict()) == ["_orig_mod.0.weight", "_orig_mod.0.bias"]
assert [id(p) for p in compiled.parameters()] == [id(p) for p in model.parameters()]
assert compiled[0] is model[0] if hasattr(type(compiled), "__getitem__") else compiled._orig_mod[0]
compiled.extra = 5
assert model.extra == 5 == compiled.extra
compiled.eval()
assert not model.training and not model[0].training
compiled.load_state_dict(compiled.state_dict())
import copy, pickle
assert torch.equal(copy.deepcopy(compiled)(x), model(x))
assert torch.equal(pickle.loads(pickle.dumps(compiled))(x), model(x))


@torch.compile(dynamic=True)
def double(x):
    return 2 * x


assert torch.equal(double(x), 2 * x) and torch.compile(double) is double
"""


def test_compiled_modules():
    run(COMPILED)


EXPORTS = """
import io
import torch
from torch import nn

model = nn.Sequential(nn.Linear(2, 3), nn.GELU())
x = torch.randn(4, 2)
file = io.BytesIO()
torch.jit.save(torch.jit.trace(model, x), file)
file.seek(0)
assert torch.equal(torch.jit.load(file)(x), model(x))
batch = torch.export.Dim("batch")
program = torch.export.export(model, (x,), dynamic_shapes=({0: batch},))
file = io.BytesIO()
torch.export.save(program, file)
file.seek(0)
y = torch.randn(7, 2)
assert torch.equal(torch.export.load(file).module()(y), model(y))
assert isinstance(program, torch.export.ExportedProgram)
assert torch._dynamo.explain(model)(x).captures == 1
"""


def test_exported_programs():
    run(EXPORTS)


def test_functions_whose_names_files_have_too():
    run("""
    import torch
    from torch.autograd.gradcheck import GradcheckError
    import torch.nn.utils.weight_norm

    assert issubclass(GradcheckError, RuntimeError)
    x = torch.ones(2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(torch.sin, (x,))
    assert torch.nn.utils.weight_norm(torch.nn.Linear(2, 1)).weight_g.shape == (1, 1)
    """)


def test_what_modules_list_is_there():
    program = """if True:
        import types, warnings
        warnings.simplefilter("ignore")
        from tensorplug import compat
        compat.install()
        import torch, torch.utils.data, torch.distributed, torch.fx, torch.optim
        seen, lost = set(), []
        def visit(module):
            if module.__name__ in seen or module.__name__.count(".") > 2:
                return
            seen.add(module.__name__)
            for name in dir(module):
                value = getattr(module, name, lost)
                if value is lost:
                    lost.append(f"{module.__name__}.{name}")
                elif isinstance(value, types.ModuleType) and value.__name__.startswith("torch."):
                    visit(value)
        visit(torch)
        print(len(seen) > 50, lost)
    """
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "True []\n"
