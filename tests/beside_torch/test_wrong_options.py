"""Arguments of a wrong kind for what is no op, beside torch: modules, functions, methods, distributions.

Modules are those of torch's own database, made with an option replaced, and called; everything else is a call
in calls_of_no_ops.txt, of which each argument is replaced in turn. What torch refuses is refused, by an error
of the same type, but for the reasons in ``known`` and in docs/deviations.md.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import importlib
import inspect
import io
import os
import random
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from benchmarks.database import importing

import tensorplug as tp
import tensorplug.utils.data

torch = pytest.importorskip("torch", reason="torch is what is compared with")
importlib.import_module("torch.nn.utils.prune")  # it is not there before
from tests.beside_torch.test_wrong_arguments import INSIDE, agree  # noqa: E402
from tests.nn.test_module_database import Translated  # noqa: E402

with importing():
    from torch.testing._internal.common_modules import module_db

CALLS = 1000 if os.environ.get("TENSORPLUG_FUZZ") else 2
PARTS = 4
LINES = (Path(__file__).parent / "calls_of_no_ops.txt").read_text().splitlines()
MODULES = [info for info in module_db if hasattr(tp.nn, info.module_cls.__name__)]
WRONG = (
    "'nonsense'", "None", "1.5", "1", "0", "-7", "True", "1 + 1j", "tensor([1.0, 2.0])", "tensor(1.5)",
    "[1]", "[1.5]", "(1, 2)", "float32", "object", "{}", "np.int64(1)", "np.float64(1.5)", "float('nan')",
    "()", "len", "b'a'",
)  # fmt: skip


@functools.cache
def names(library):
    """Return what the lines may name, of one of the two libraries."""

    def x(*sizes):
        return library.full(sizes, 0.5)

    def leaf(*sizes):
        return x(*sizes).requires_grad_()

    def graded(*sizes):
        made = leaf(*sizes)
        made.grad = x(*sizes)
        return made

    def once(*sizes):
        made = leaf(*sizes)
        return made, (made * made).sum()

    public = {name: getattr(library, name) for name in dir(library) if not name.startswith("__")}
    return public | {
        "abs": abs, "max": max, "list": list, "len": len, "object": object, "float": float,
        "bytearray": bytearray, "np": np, "print": lambda *args, **kwargs: None,
        "x": x, "leaf": leaf, "graded": graded, "once": once,
        "module": lambda: library.nn.Sequential(library.nn.BatchNorm1d(3), library.nn.Linear(3, 2)),
        "packed": lambda: library.nn.utils.rnn.pack_padded_sequence(x(3, 2, 4), [3, 2]),
        "double": lambda *sizes: x(*sizes).double().requires_grad_(),
        "total": lambda t: (t * t * t).sum(),
    }  # fmt: skip


def evaluated(library, text):
    """Return the error of a call, or None; what the call set is set back."""
    dtype, threads = library.get_default_dtype(), library.get_num_threads()
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            eval(text, dict(names(library)))
    except Exception as error:
        return error
    finally:
        library.set_default_dtype(dtype)
        library.set_default_device(None)
        library.set_grad_enabled(True)
        library.set_anomaly_enabled(False)
        library.use_deterministic_algorithms(False)
        library.set_printoptions(profile="default")
        library.set_num_threads(threads)
        library.set_float32_matmul_precision("highest")
    return None


def variants(line):
    """Yield calls with an argument missing, or one of a wrong kind."""
    call = ast.parse(line, mode="eval").body
    around = "list({})" if ast.unparse(call.func) == "list" else "{}"
    if around != "{}":
        call = call.args[0]
    given = [ast.unparse(value) for value in call.args]
    named = [(keyword.arg, ast.unparse(keyword.value)) for keyword in call.keywords]

    def text(given, named):
        arguments = ", ".join([*given, *(f"{name}={value}" for name, value in named)])
        return around.format(f"{ast.unparse(call.func)}({arguments})")

    if given:
        yield text(given[:-1], named)
    for wrong in WRONG:
        for i in range(len(given)):
            yield text([*given[:i], wrong, *given[i + 1 :]], named)
        for i, (name, _) in enumerate(named):
            yield text(given, [*named[:i], (name, wrong), *named[i + 1 :]])
        if not named:
            yield text([*given, wrong], named)
        yield text(given, [*named, ("nonsense", wrong)])


def made_and_called(library, kind, place, wrong, options, inputs):
    """Return the error of a module that is made with an option replaced, and called; or None."""
    args, kwargs = list(options[0]), dict(options[1])
    (args if isinstance(place, int) else kwargs)[place] = eval(wrong, names(library))
    try:
        kind(*args, **kwargs)(*copy.deepcopy(inputs[0]), **copy.deepcopy(inputs[1]))
    except Exception as error:
        return error
    return None


#: Errors that tell what is wrong, of which another type than torch's is in docs/deviations.md.
TELLING = (TypeError, ValueError, RuntimeError, IndexError, KeyError)
#: What is read by its truth there, written as text, or not looked at before it is used, if ever.
STRICT = re.compile(
    r"must be (a )?(bool|int|float|str|Number|callable)\b|decorates functions|is one of|"
    r"must be Tensor|expected a device|expected 'highest'|invalid combination|not a Module subclass|"
    r"sizes must be ints|without overflow|made of ints|device_type|is not iterable"
)
#: Calls, by their text, of which one library refuses what the other takes.
DIFFERENT = (
    # Read as what they mean here: prefixes are text, bools and None numbers or nothing.
    r"prefix=",
    r"(retain|create)_graph=(tensor|-7)|allow_unused=tensor",
    r"frombuffer\(|broadcast_shapes\(|clip_grad_value_\(|sparse_\w+_tensor\(|\bset_\(|random_\(None",
    r"no_grad\(None|symbolic_trace\(.*, \(|resize_as_\(x\(3\), None|dim=True|insert\(-7",
    # Looked at before they are used.
    r"ContinuousBernoulli\(|RelaxedBernoulli\(|RelaxedOneHotCategorical\(|AffineTransform\(",
    r"DistributedSampler\(.*nan|autograd.grad\(\{\}|eps=0,|\bto\(True",
)


def known(text, theirs, ours):
    """Return whether docs/deviations.md has the reason for a difference."""
    if any(re.search(pattern, text) for pattern in DIFFERENT):
        return True
    if theirs is None:
        return bool(STRICT.search(str(ours)))
    if ours is None:
        return bool(INSIDE.search(str(theirs)))
    return isinstance(ours, TELLING)


def compared(text, theirs, ours, found):
    if not agree(theirs, ours) and not known(text, theirs, ours):
        found.append(f"{text}: torch {theirs!r:.100}, ours {ours!r:.100}")


@pytest.mark.parametrize("part", range(PARTS))
def test_calls(part):
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for line in LINES[part::PARTS]:
            calls = list(variants(line))
            # What is drawn for a line depends on no other.
            for text in [line, *random.Random(line).sample(calls, min(CALLS, len(calls)))]:
                compared(text, evaluated(torch, text), evaluated(tp, text), found)
    assert not found, "\n".join(found)


@pytest.mark.parametrize("part", range(PARTS))
def test_modules(part):
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for info in MODULES[part::PARTS]:
            name = info.module_cls.__name__
            samples = info.module_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=False, training=True
            )
            options, inputs = samples[0].constructor_input, samples[0].forward_input
            translated = Translated()
            given = (options.args, options.kwargs), (inputs.args, inputs.kwargs)
            own = tuple((translated(list(args)), translated(kwargs)) for args, kwargs in given)
            parameters = list(inspect.signature(info.module_cls.__init__).parameters)[1:]
            places = [*range(len(options.args)), *parameters[len(options.args) :], "nonsense"]
            calls = [(place, wrong) for place in places for wrong in WRONG]
            for place, wrong in random.Random(name).sample(calls, min(CALLS, len(calls))):
                theirs = made_and_called(torch, info.module_cls, place, wrong, *given)
                ours = made_and_called(tp, getattr(tp.nn, name), place, wrong, *own)
                compared(f"{name}, {place}: {wrong}", theirs, ours, found)
    assert not found, "\n".join(found)
