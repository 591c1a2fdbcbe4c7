"""What libraries reach for below torch's public names does what torch's does."""

import contextlib
import itertools
import subprocess
import sys
import types
import warnings

import pytest

import tensorplug as tp
from tensorplug.compat import additions, environment, library_names, loaders
from tensorplug.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __iter__(self):
        info = tp.data.get_worker_info()
        return iter(range(6)) if info is None else iter(range(info.id, 6, info.num_workers))


def someones_loader(num_workers, kind):
    """The attributes that torch's loaders have, on an object of another class."""
    stream = kind is loaders.DatasetKind.Iterable
    return types.SimpleNamespace(
        dataset=Stream() if stream else [10, 20, 30],
        num_workers=num_workers,
        collate_fn=lambda sample: sample,
        drop_last=False,
        generator=None,
        multiprocessing_context=None,
        persistent_workers=False,
        pin_memory=False,
        prefetch_factor=2,
        timeout=0,
        worker_init_fn=None,
        _auto_collation=False,
        _dataset_kind=kind,
        _index_sampler=itertools.repeat(None) if stream else [2, 0, 1],
    )


@pytest.mark.parametrize(
    ("num_workers", "pass_over"), [(0, loaders.SerialPass), (2, loaders.ParallelPass)]
)
@pytest.mark.parametrize("kind", loaders.DatasetKind)
def test_passes_over_loaders_of_other_classes(kind, num_workers, pass_over):
    made = pass_over(someones_loader(num_workers, kind))
    assert isinstance(made, pass_over)
    assert isinstance(made, loaders.BasePass)
    found = list(made)
    assert (sorted(found) if kind else found) == (list(range(6)) if kind else [30, 10, 20])


def test_passes_over_our_loaders():
    loader = DataLoader([1, 2, 3], batch_size=None)
    assert list(loaders.SerialPass(loader)) == [1, 2, 3]
    assert isinstance(iter(loader), loaders.SerialPass)
    assert not isinstance(iter(loader), loaders.ParallelPass)
    assert not isinstance(iter([]), loaders.BasePass)


def test_groups_keep_the_order_of_their_tensors():
    single, double = tp.ones(2), tp.ones(2, dtype=tp.float64)
    given = [[single, double, single * 2], [None, 1, 2]]
    groups = library_names._grouped(given, with_indices=True)
    assert groups[tp.device("cpu"), tp.float32] == ([[given[0][0], given[0][2]], [None, 2]], [0, 2])
    assert groups[tp.device("cpu"), tp.float64] == ([[double], [1]], [1])
    assert not library_names._grouped([[]])


def test_products_by_their_old_names():
    names = additions.ADDITIONS["torch"]
    dense, more = tp.arange(6.0).reshape(3, 2), tp.ones(2, 2)
    matrix = tp.tensor([[0.0, 2.0, 0.0], [1.0, 0.0, -3.0]])
    product = (matrix.numpy() @ dense.numpy()).tolist()
    assert names["dsmm"](matrix.to_sparse(), dense).tolist() == product
    hybrid = names["hsmm"](matrix.to_sparse(), dense)
    assert (hybrid.dense_dim(), hybrid.to_dense().tolist()) == (1, product)
    added = names["saddmm"](more.to_sparse(), matrix.to_sparse(), dense, beta=2)
    assert added.is_sparse
    assert added.to_dense().tolist() == (2 + matrix.numpy() @ dense.numpy()).tolist()


def test_modules_hold_other_tensors_within_a_block():
    reparametrize = library_names.ADDITIONS["torch.nn.utils.stateless"]["_reparametrize_module"]
    module = tp.nn.Linear(2, 1)
    weight = module.weight
    with reparametrize(module, {"weight": tp.ones(1, 2), "bias": tp.zeros(1)}):
        assert module(tp.ones(2)).item() == 2
    assert module.weight is weight


def test_machines_are_asked_about():
    names = environment.ADDITIONS["torch.utils.collect_env"]
    assert names["run"]("echo one; echo two >&2; exit 3") == (3, "one", "two")
    assert names["run"](["no such command"])[0] == 127
    written = "NVIDIA-SMI 1\n| Driver Version: 550.54 CUDA |\ngcc (Debian) 12\nclang version 15.0"
    found = {name: names[name](lambda _: (0, written, "")) for name in names if name != "run"}
    assert found["get_nvidia_driver_version"] == "550.54"
    assert found["get_gcc_version"] == "(Debian) 12"
    assert found["get_clang_version"] == "15.0"
    assert found["get_cpu_info"] == found["get_gpu_info"] == written
    assert found["get_cmake_version"] is None
    assert {names[name](lambda _: (127, "", "")) for name in found} == {None}


def test_contexts_decorate_each_call_anew():
    class Counting(library_names.DecoratorContextManager):
        made = entered = 0

        def __init__(self):
            Counting.made += 1

        def __enter__(self):
            Counting.entered += 1

        def __exit__(self, *exc):
            pass

    @Counting()
    def function(x):
        return x + 1

    assert function(1) == 2
    assert function(2) == 3
    assert (Counting.made, Counting.entered) == (3, 2)


def test_a_warning_is_told_once():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(3):
            library_names._warn_once("once, test_library_names")
    assert len(told) == 1


@pytest.mark.parametrize("mask", [None, [True, False], [0.5, -1.0]])
def test_masks_of_attention(mask):
    given = None if mask is None else tp.tensor(mask)
    made = library_names._canonical_mask(given, "mask", None, "other", tp.float32)
    wanted = {None: None, True: [-float("inf"), 0.0], 0.5: mask}[mask and mask[0]]
    assert (made if made is None else made.tolist()) == wanted
    other = pytest.warns(UserWarning, match="mismatched mask and other")
    with other if mask else contextlib.nullcontext():
        library_names._canonical_mask(given, "mask", tp.int64, "other", tp.float32)


def test_masks_of_other_dtypes_are_refused():
    with pytest.raises(AssertionError, match="only bool and floating"):
        library_names._canonical_mask(tp.tensor([1]), "mask", None, "other", tp.float32)


def test_draws_of_gamma_distributions():
    tp.manual_seed(0)
    concentration = tp.full((20000,), 3.0, requires_grad=True)
    drawn = library_names._gamma(concentration)
    assert drawn.mean().item() == pytest.approx(3, abs=0.05)
    assert drawn.var().item() == pytest.approx(3, abs=0.2)
    drawn.mean().backward()
    assert concentration.grad.sum().item() == pytest.approx(
        1, abs=0.05
    )  # the mean is the concentration


def test_files_that_a_function_of_their_package_hides(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "from torch.multiprocessing.spawn import ProcessRaisedException\n"
        "from torch.nn.utils.spectral_norm import SpectralNorm\n"
        "from torch.nn.utils.weight_norm import WeightNorm\n"
        "assert ProcessRaisedException is torch.multiprocessing.ProcessRaisedException\n"
        "assert callable(torch.multiprocessing.spawn)\n"
        "for name, kind in (('spectral_norm', SpectralNorm), ('weight_norm', WeightNorm)):\n"
        "    module = getattr(torch.nn.utils, name)(torch.nn.Linear(2, 3))\n"
        "    assert isinstance(next(iter(module._forward_pre_hooks.values())), kind)\n"
    )
    command = [sys.executable, "-m", "tensorplug.compat", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_files_are_attributes_without_an_import_of_their_own(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "from tensorplug.compat.finder import _DISTRIBUTIONS\n"
        "for file in _DISTRIBUTIONS.split():\n"
        "    assert getattr(torch.distributions, file).__name__ == f'torch.distributions.{file}'\n"
        "assert torch.distributions.uniform.Uniform is torch.distributions.Uniform\n"
        "assert callable(torch.cpu.amp.autocast_mode.autocast)\n"
        "assert not hasattr(torch.distributions, 'nothing')\n"
    )
    command = [sys.executable, "-m", "tensorplug.compat", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_names_of_reports_and_of_containers(tmp_path):
    pytest.importorskip("tensorboardX", reason="it has the summaries")
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\n"
        "from torch.utils.tensorboard import SummaryWriter\n"
        "from torch.utils.tensorboard.summary import hparams\n"
        "from torch.utils.tensorboard.writer import SummaryWriter as Writer\n"
        "from torch.utils._pytree import SUPPORTED_NODES\n"
        "assert Writer is SummaryWriter\n"
        "assert len(hparams({'rate': 0.1}, {'loss': 2.0})) == 3\n"
        "values, context = SUPPORTED_NODES[dict].flatten_fn({'a': 1, 'b': 2})\n"
        "assert SUPPORTED_NODES[dict].unflatten_fn(values, context) == {'a': 1, 'b': 2}\n"
        "assert torch.cuda._is_in_bad_fork() is False\n"
    )
    command = [sys.executable, "-m", "tensorplug.compat", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_sharded_tensors_by_their_earlier_names(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import torch.distributed._tensor as earlier\n"
        "import torch.distributed.tensor as tensor\n"
        "from torch.distributed._tensor.api import DTensor\n"
        "from torch.distributed._tensor.device_mesh import DeviceMesh\n"
        "from torch.distributed._tensor.placement_types import Shard\n"
        "from torch.distributed.device_mesh import DeviceMesh as Mesh\n"
        "names = 'DTensor Partial Placement Replicate Shard distribute_tensor'\n"
        "for name in names.split():\n"
        "    assert getattr(earlier, name) is getattr(tensor, name)\n"
        "assert DTensor is tensor.DTensor and Shard is tensor.Shard and DeviceMesh is Mesh\n"
    )
    command = [sys.executable, "-m", "tensorplug.compat", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
