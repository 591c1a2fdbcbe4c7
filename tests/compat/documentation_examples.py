"""The examples in torch's documentation, run with torch and with tensorplug, statement by statement.

What a statement draws at random, or leaves as it was in memory, becomes torch's on both sides where that can
be: in leaves and in modules. What is computed of numbers that stay apart is compared by its kind alone.
"""

import ast
import builtins
import contextlib
import doctest
import importlib
import inspect
import io
import math
import types

import numpy as np
import torch

import tensorplug as tp

MODULES = (
    "nn", "nn.functional", "nn.init", "nn.utils", "nn.utils.rnn", "nn.utils.parametrize",
    "nn.utils.parametrizations", "nn.utils.prune", "linalg", "special", "fft", "optim",
    "optim.lr_scheduler", "optim.swa_utils", "distributions", "distributions.transforms", "func",
    "autograd", "autograd.functional", "autograd.forward_ad", "autograd.graph", "sparse", "utils.data",
    "utils.checkpoint", "utils.dlpack", "masked", "signal.windows", "amp", "random", "quasirandom",
    "testing", "nn.attention", "overrides", "serialization", "nn.parameter", "storage",
)  # fmt: skip
#: What there is nothing of here, or nothing on this machine, or what would ask or wait for somebody.
ELSEWHERE = (
    "cuda", "xpu", "mps", "fx.experimental", "torch.distributions.normal", "dist.init", "device_mesh",
    "multiprocessing", "hub.", "torchvision", "open(", "quantize", "quint8", "nested", "_ops.",
)  # fmt: skip
#: Draw numbers of NumPy's or of a generator made there, or show memory as it was.
UNSETTLED = ("empty", "resize", "Generator", "seed(", "rng_state", "make_tensor")


def documented():
    """Yield names that both have, and torch's docstrings, each once."""
    seen = set()
    modules = [importlib.import_module(f"torch.{module}") for module in MODULES]
    for owner in (torch.Tensor, torch, *modules):
        place = owner.__name__ if inspect.ismodule(owner) else "torch.Tensor"
        for name in sorted(vars(owner)):
            value = getattr(owner, name, None)
            if name.startswith("_") or inspect.ismodule(value):
                continue
            if not str(getattr(value, "__module__", None) or "torch").startswith("torch"):
                continue
            members = (
                vars(value).items() if inspect.isclass(value) and owner is not torch.Tensor else ()
            )
            for member, item in [
                (name, value),
                *[(f"{name}.{m}", i) for m, i in members if m[0] != "_"],
            ]:
                text = getattr(item, "__doc__", None)
                if isinstance(text, str) and ">>>" in text and text not in seen:
                    seen.add(text)
                    if _counterpart(f"{place}.{member}") is not None:
                        yield f"{place}.{member}", text


def _counterpart(name):
    found = tp
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def statements(text):
    """Return the statements of a docstring's examples."""
    found = []
    try:
        found = [example.source for example in doctest.DocTestParser().get_examples(text)]
    except ValueError:  # not indented as doctest wants it
        for line in map(str.strip, text.splitlines()):
            if line.startswith(">>>"):
                found.append(line[4:] + "\n")
            elif line.startswith("...") and found:
                found[-1] += line[4:] + "\n"
    return [source for source in found if _parsed(source)]


def _parsed(source):
    try:
        return ast.parse(source).body
    except SyntaxError:  # shortened by its author
        return []


def _importing(name, globals=None, locals=None, fromlist=(), level=0):
    """Import, with our modules for torch's."""
    if name.partition(".")[0] == "torch" and not level:
        name = "tensorplug" + name[5:]
    return builtins.__import__(name, globals, locals, fromlist, level)


def namespace(lib, name):
    """Return the names that a docstring takes for granted."""
    ours = {**vars(builtins), "__import__": _importing}
    found = {
        "__builtins__": builtins if lib is torch else ours, "torch": lib, "nn": lib.nn,
        "F": lib.nn.functional, "np": np, "numpy": np, "math": math, "optim": lib.optim,
    }  # fmt: skip
    owner = lib
    for part in name.split(".")[1:-1]:
        owner = getattr(owner, part, None)
    if isinstance(owner, types.ModuleType):
        found = {
            k: v for k, v in vars(owner).items() if k[0] != "_" and not hasattr(builtins, k)
        } | found
    return found


class Example:
    """A docstring's statements, on both sides.

    Attributes
    ----------
    agreed, refused, left : int
        How many statements did the same, raised on both sides, and were not run.
    differing : list of str
        The others.
    """

    def __init__(self, name, text):
        self.name = name
        self.theirs, self.ours = namespace(torch, name), namespace(tp, name)
        self.apart = set()  # names of what holds numbers of its own on each side
        self.agreed = self.refused = self.left = 0
        self.differing = []
        for lib in (torch, tp):
            _as_at_first(lib)
        for source in statements(text):
            self.run(source)
        for lib in (torch, tp):
            _as_at_first(lib)

    def run(self, source):
        """Run a statement on both sides and compare."""
        if any(word in source for word in ELSEWHERE) or self.apart & {"everything"}:
            self.left += 1
            return
        before = {name: id(value) for name, value in self.theirs.items()}
        state = torch.random.get_rng_state()
        expected, raised = _done(source, self.theirs)
        drawn = not torch.equal(state, torch.random.get_rng_state())
        found, refusal = _done(source, self.ours)
        if raised is not None or refusal is not None:
            if raised is not None and refusal is not None:
                self.refused += 1
            elif refusal is not None:
                self.differing.append(
                    f"{source.strip()!r} raised {type(refusal).__name__}: {refusal}"
                )
                self.apart.add("everything")
            else:
                self.differing.append(
                    f"{source.strip()!r} did not raise {type(raised).__name__}: {raised}"
                )
            return
        drawn |= any(word in source for word in UNSETTLED)
        names = {node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)}
        loose = drawn or bool(names & self.apart)
        changed = [k for k, v in self.theirs.items() if before.get(k) != id(v) and k in self.ours]
        try:
            for name in changed:
                alike(self.theirs[name], self.ours[name], name, loose)
            alike(expected, found, "value", loose)
        except Exception as error:  # of classes that an example makes
            self.differing.append(f"{source.strip()!r}: {error}")
        else:
            self.agreed += 1
        if loose:
            touched = {name for name in names if name in self.ours and name in before}
            for name in {*changed, *touched}:
                self.settle(name)

    def settle(self, name):
        """Give ours torch's numbers; where that cannot be, note that they are its own."""
        value = self.theirs[name]
        if isinstance(
            value, types.ModuleType | type | types.FunctionType | types.BuiltinFunctionType
        ):
            return
        try:
            if isinstance(value, torch.nn.Module):
                state = {key: ours_of(item) for key, item in value.state_dict().items()}
                self.ours[name].load_state_dict(state)
            else:
                self.ours[name] = ours_of(value)
            self.apart.discard(name)
        except (TypeError, RuntimeError, AttributeError):
            self.apart.add(name)


def _as_at_first(lib):
    lib.set_default_dtype(lib.float32)
    lib.set_default_device(None)
    lib.use_deterministic_algorithms(False)
    lib.set_grad_enabled(True)
    lib.set_printoptions(profile="default")
    lib.set_flush_denormal(False)
    lib.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  what examples draw of


def _done(source, names):
    """Return the value of the last expression, and what was raised."""
    body = ast.parse(source).body
    last = body.pop() if isinstance(body[-1], ast.Expr) else None
    silent = io.StringIO()
    try:
        with contextlib.redirect_stdout(silent), contextlib.redirect_stderr(silent):
            exec(compile(ast.Module(body, []), "<example>", "exec"), names)
            if last is None:
                return None, None
            return eval(compile(ast.Expression(last.value), "<example>", "eval"), names), None
    except Exception as error:
        return None, error


def ours_of(value):
    """Return a leaf of torch's, or several, as ours."""
    if isinstance(value, torch.nn.Parameter):
        return tp.nn.Parameter(ours_of(value.detach()), value.requires_grad)
    if type(value) is torch.Tensor and value.layout is torch.strided and value.is_leaf:
        made = tp.from_dlpack(value.detach().clone()).clone()
        return made.requires_grad_() if value.requires_grad else made
    if type(value) in (tuple, list):
        return type(value)([ours_of(item) for item in value])
    if type(value) in (int, float, bool, str, type(None)):
        return value
    raise TypeError(type(value).__name__)


def alike(expected, found, path, loose):
    """Compare what torch made with ours; `loose` leaves the numbers out."""
    if isinstance(expected, torch.Tensor):
        assert isinstance(found, tp.Tensor), f"{path} is a {type(found).__name__}"
        assert str(found.dtype).rpartition(".")[2] == str(expected.dtype)[6:], (
            f"{path}: {found.dtype}"
        )
        assert loose or tuple(found.shape) == tuple(expected.shape), f"{path}: {found.shape}"
        assert found.requires_grad == expected.requires_grad, f"{path}.requires_grad"
        if not loose and expected.device.type == "cpu":
            wide = (
                torch.float32
                if expected.dtype in (torch.float16, torch.bfloat16)
                else expected.dtype
            )
            theirs = expected.detach().to_dense().to(wide).resolve_conj().resolve_neg().numpy()
            ours = found.detach().to_dense().to(getattr(tp, str(wide)[6:])).numpy()
            near = np.allclose(ours, theirs, rtol=1e-4, atol=1e-4, equal_nan=True)
            assert near, f"{path}: {ours}, torch {theirs}"
    elif isinstance(expected, list | tuple):
        assert isinstance(found, list | tuple), f"{path} is a {type(found).__name__}"
        assert loose or len(found) == len(expected), (
            f"{path}: {len(found)} items, torch {len(expected)}"
        )
        for number, pair in enumerate(zip(expected, found, strict=False)):
            alike(*pair, f"{path}[{number}]", loose)
    elif isinstance(expected, dict):
        assert list(map(str, found)) == list(map(str, expected)), f"{path}: {list(found)}"
        for key, pair in zip(
            expected, zip(expected.values(), found.values(), strict=True), strict=True
        ):
            alike(*pair, f"{path}[{key!r}]", loose)
    elif isinstance(expected, bool | int | float | complex | str | bytes | type(None)):
        assert type(found) is type(expected), f"{path}: {found!r}, torch {expected!r}"
        if isinstance(expected, float | complex):
            assert loose or np.allclose(found, expected, rtol=1e-4, atol=1e-4, equal_nan=True), (
                f"{path}: {found}"
            )
        else:
            assert loose or found == expected, f"{path}: {found!r}, torch {expected!r}"
    elif isinstance(
        expected, torch.nn.Module | torch.dtype | torch.device | torch.finfo | torch.iinfo
    ):
        said = repr(found).replace("tensorplug.", "torch.")
        assert loose or said == repr(expected), f"{path}: {said}, torch {expected!r}"
