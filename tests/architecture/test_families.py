"""Files of one family have one name in every layer, and an op is in one family in all of them."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import tensorplug as tp
import tensorplug.amp
import tensorplug.nn
import tensorplug.optim
from tensorplug.core.dispatch import op_registry
from tensorplug.core.plugins import manager
from tensorplug.plugin import KernelTable
from tensorplug.plugin.array_kernels import ArrayNamespace
from tensorplug.testing.families import FAMILIES, HELPERS, LAYERS, family_of, modules_of

ROOT = Path(__file__).parents[2]
SHARED = "tensorplug.plugin.array_kernels"
NUMPY = "tensorplug_cpu_numpy.kernels"
# Comparisons over all ops, and what tests share.
OVER_FAMILIES = {"conftest", "test_against_torch", "test_halves_rounded_once", "test_mixed_out"}


def stems(layer: str) -> list[str]:
    package = importlib.import_module(layer)
    return [module.name for module in pkgutil.iter_modules(package.__path__)]


def is_family(stem: str) -> bool:
    return stem in FAMILIES or stem in HELPERS or stem.startswith("_")


def path_of(module: ModuleType) -> str:
    return Path(module.__file__ or "").resolve().relative_to(ROOT).as_posix()


def declarations() -> dict[str, ModuleType]:
    """The module that declares each op of ours."""
    return {
        op.name: importlib.import_module(op.function.__module__)
        for op in op_registry.all_ops()
        if op.function.__module__.startswith(LAYERS)
    }


def formulas() -> Iterator[tuple[str, ModuleType, str]]:
    for layer in ("tensorplug.autograd.formulas", "tensorplug.nn.ops"):
        for module in modules_of(layer):
            if not hasattr(module, "__path__"):  # a folder's list is put together from its files'
                for item in (*getattr(module, "DERIVATIVES", ()), *getattr(module, "TANGENTS", ())):
                    yield item.op, module, layer


def samples() -> Iterator[tuple[str, ModuleType, str]]:
    layer = "tensorplug.testing.samples"
    for module in modules_of(layer):
        for record in getattr(module, "RECORDS", ()):
            yield record.op, module, layer


def kernels(layer: str) -> Iterator[tuple[str, ModuleType, str]]:
    """What each file's ``build`` puts in a table, generated or written."""
    natives = importlib.import_module("tensorplug_cpu_numpy.runtime").NATIVES
    namespace = ArrayNamespace(np, "cpu", natives)
    for module in modules_of(layer):
        if hasattr(module, "build"):
            table = KernelTable("cpu")
            takes_namespace = len(inspect.signature(module.build).parameters) == 2
            module.build(*(namespace, table) if takes_namespace else (table,))
            for kernel in table:
                yield kernel.op, module, layer


def strays(placed: Iterator[tuple[str, ModuleType, str]]) -> list[str]:
    """Each op that is in a file of another family than the one that declares it, with both paths."""
    declared = declarations()
    return sorted(
        {
            f"{op}: {path_of(declared[op])} declares it, {path_of(module)} has it"
            for op, module, layer in placed
            if op in declared
            and family_of(module.__name__, layer) != family_of(declared[op].__name__)
        }
    )


@pytest.mark.parametrize("layer", [*LAYERS, NUMPY])
def test_files_are_named_after_families(layer):
    assert [stem for stem in stems(layer) if not is_family(stem)] == []


def test_tests_are_named_after_families():
    found = {path.stem for path in (ROOT / "tests/ops").glob("*.py")} - OVER_FAMILIES
    named = {
        stem
        for stem in found
        for family in FAMILIES
        if f"{stem}_".startswith(f"test_{family}_")  # further files add their topic
    }
    assert sorted(found - named) == []


def test_each_family_is_there():
    found = {stem for layer in LAYERS for stem in stems(layer)}
    assert sorted(set(FAMILIES) - found) == []


@pytest.mark.parametrize(
    "placed",
    [formulas, samples, lambda: kernels(SHARED), lambda: kernels(NUMPY)],
    ids=["formulas", "samples", "shared kernels", "NumPy kernels"],
)
def test_an_op_is_in_one_family(placed):
    tp.ones(1)  # loads the kernels' plugin
    assert any(True for _ in placed())
    assert strays(placed()) == []


@pytest.mark.parametrize("kind", ["derivatives", "tangents", "vmap_rules"])
def test_what_a_file_declares_its_plugin_registers(kind):
    records = [manager.record_of(name) for name in ("autograd", "nn")]
    registered = {id(item) for record in records for item in getattr(record, kind)}
    layers = ("tensorplug.autograd.formulas", "tensorplug.nn.ops", "tensorplug.nn.functional")
    declared = [
        (module.__name__, rule)
        for layer in layers
        for module in modules_of(layer)
        for item in getattr(module, kind.upper(), ())
        for rule in (item if isinstance(item, list) else [item])
    ]
    assert len(declared) > 20
    assert [f"{name}: {item}" for name, item in declared if id(item) not in registered] == []


def test_a_stray_is_found():
    from tensorplug.autograd.formulas import matmul

    (stray,) = strays(iter([("add", matmul, "tensorplug.autograd.formulas")]))
    assert stray == (
        "add: core/ops/arithmetic/pointwise.py declares it, autograd/formulas/matmul.py has it"
    )
    assert not is_family("pointwise")
