"""CuPy has every function, with every argument, that the shared kernels call."""

import ast
import inspect
import re
from pathlib import Path

import pytest

import tensorplug.plugin.array_kernels as shared
import tensorplug_cuda_cupy

cupy = pytest.importorskip(
    "cupy", reason="CuPy is not installed: make test-cuda-compile installs it"
)

FILES = sorted(Path(shared.__file__).parent.glob("*.py"))


def chain(node):
    """Return "add.reduce" of ``xp.add.reduce`` or ``namespace.xp.add.reduce``, else None."""
    names = []
    while isinstance(node, ast.Attribute):
        names.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    names.append(node.id)
    names.reverse()
    if names[:2] == ["namespace", "xp"]:
        names = names[1:]
    return ".".join(names[1:]) if names[0] == "xp" and len(names) > 1 else None


def uses(path):
    """Yield (line, name, call or None) of what a file takes from the array library."""
    tree = ast.parse(path.read_text("utf-8"))
    aliases = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = chain(node.value)
            if name is not None:
                aliases[node.targets[0].id] = name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and chain(node) is not None:
            yield node.lineno, chain(node), None
        if isinstance(node, ast.Call):
            name = chain(node.func)
            if name is None and isinstance(node.func, ast.Name):
                name = aliases.get(node.func.id)
            if name is not None:
                yield node.lineno, name, node


def found_in_cupy(name):
    value = cupy
    for part in name.split("."):
        value = getattr(value, part)
    return value


def takes(function, call):
    """Return whether a function takes the arguments of a call."""
    if any(isinstance(argument, ast.Starred) for argument in call.args):
        return True
    keywords = {keyword.arg for keyword in call.keywords}
    if isinstance(function, cupy.ufunc):
        return len(call.args) <= function.nargs and keywords <= {"out", "dtype", "casting"}
    if inspect.isbuiltin(function) or type(function).__name__ == "cython_function_or_method":
        # What Cython compiled tells its arguments in the first line of its documentation.
        declared = (function.__doc__ or "").partition("\n")[0].partition("(")[2].rpartition(")")[0]
        names = [part.partition("=")[0].split()[-1] for part in declared.split(",") if part.strip()]
        names = [name for name in names if name not in ("self", "/", "*")]
        return len(call.args) <= len(names) and keywords <= set(names)
    signature = inspect.signature(function)
    try:
        signature.bind(*call.args, **dict.fromkeys(keywords))
    except TypeError:
        return False
    return True


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_use_is_known_to_cupy(path):
    for line, name, call in uses(path):
        where = f"{path.name}:{line}: xp.{name}"
        try:
            function = found_in_cupy(name)
        except AttributeError:
            pytest.fail(f"{where}: CuPy has no such function")
        if call is not None:
            assert takes(function, call), f"{where}: CuPy's takes other arguments"


OWN = sorted(Path(tensorplug_cuda_cupy.__file__).parent.rglob("*.py"))


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.stem)
def test_our_own_uses_are_known_to_cupy(path):
    for name in sorted(set(re.findall(r"\bcp\.([a-zA-Z_][\w.]*)", path.read_text("utf-8")))):
        try:
            found_in_cupy(name)
        except AttributeError:
            pytest.fail(f"{path.name}: cp.{name}: CuPy has no such thing")


def test_the_uses_are_found():
    found = {name for path in FILES for _, name, _ in uses(path)}
    assert {"add.reduce", "concatenate", "fft.fftn", "lib.stride_tricks.as_strided"} <= found
    assert sum(call is not None for path in FILES for *_, call in uses(path)) > 80


def test_a_wrong_call_is_noticed():
    good, bad = (
        ast.parse(code).body[0].value for code in ("xp.max(a, axis=0)", "xp.max(a, along=0)")
    )
    assert takes(cupy.max, good)
    assert not takes(cupy.max, bad)


def test_the_table_has_a_kernel_for_each_primitive():
    from tensorplug.core import operators
    from tensorplug_cuda_cupy import plugin, tables

    kernels = tables.core_kernels(plugin.runtime)
    primitives = {
        op.name for op in operators.all_ops() if op.sort == "primitive" and op.owner == "tensorplug"
    }
    assert primitives - {kernel.op for kernel in kernels} == set()
    assert all(kernel.priority == 0 and kernel.device == "cuda" for kernel in kernels)
    names = {kernel.op for kernel in kernels}
    assert names <= {op.name for op in operators.all_ops()}


def test_special_functions_are_there():
    import cupyx.scipy.special as functions

    from tensorplug_cuda_cupy.kernels import special

    for name in (*special.UNIVERSAL.values(), *special.BESSEL, "gammaln"):
        assert hasattr(functions, name)


@pytest.mark.parametrize("name", ["add", "exp", "maximum", "equal", "multiply", "sqrt", "negative"])
def test_functions_that_are_used_as_they_are_have_bfloat16(name):
    assert any(types.startswith("E") for types in getattr(cupy, name).types)


def test_the_runtime_uses_what_cupy_has():
    for name in (
        "alloc_pinned_memory", "Device", "Event", "get_allocator", "get_current_stream", "get_elapsed_time",
        "MemoryPointer", "MemoryPool", "PinnedMemoryPointer", "set_allocator", "Stream", "UnownedMemory",
        "using_allocator", "runtime.deviceCanAccessPeer", "runtime.deviceSynchronize",
        "runtime.getDeviceProperties", "runtime.memGetInfo", "memory.OutOfMemoryError",
        "device.get_cublas_handle", "Stream.begin_capture", "Stream.end_capture", "Stream.wait_event",
        "Stream.from_external", "Stream.is_capturing", "Graph.launch", "runtime.streamCaptureModeGlobal",
        "runtime.streamCaptureModeThreadLocal", "runtime.streamCaptureModeRelaxed",
    ):  # fmt: skip
        found_in_cupy(f"cuda.{name}")
    for name in (
        "used_bytes",
        "total_bytes",
        "get_limit",
        "set_limit",
        "free_all_blocks",
        "malloc",
    ):
        assert hasattr(cupy.cuda.MemoryPool, name)


def test_arrays_can_be_watched():
    """``uses.Uses`` learns through a weak reference that an array is gone."""
    assert cupy.ndarray.__weakrefoffset__


def test_the_default_allocator_is_told_from_others():
    """``DeviceMemory.install`` takes the place of this one alone."""
    assert cupy.cuda.get_allocator() == cupy.get_default_memory_pool().malloc
