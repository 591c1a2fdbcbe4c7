"""Every function of the public namespaces, given nothing but None, strings or objects, beside torch."""

import types
import warnings

import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="what it refuses is what is to be refused")

SPACES = ("", "nn.functional", "linalg", "special", "fft", "sparse")
#: What would change the process, or wait, beside what begins with "set_".
LEFT_OUT = {"compile", "fork", "from_file", "load", "manual_seed", "save", "seed", "wait"}
#: What torch refuses, and is taken here: None stands for what may be left out, and settings are names.
TAKEN = {
    "is_autocast_enabled", "sparse_coo_tensor", "sym_constrain_range",
    "get_device_module",
}  # fmt: skip
#: Errors that tell of a function's inside.
INTERNAL = (AttributeError, IndexError, KeyError, UnboundLocalError, AssertionError)


def space(library, name):
    for part in filter(None, name.split(".")):
        library = getattr(library, part)
    return library


def functions(name):
    ours, theirs = space(tp, name), space(torch, name)
    for public in dir(ours):
        function = getattr(ours, public, None)
        if public.startswith(("_", "set_")) or public in LEFT_OUT or not hasattr(theirs, public):
            continue
        if callable(function) and not isinstance(function, (type, types.ModuleType)):
            yield public, function, getattr(theirs, public)


def outcome(function, arguments):
    try:
        function(*arguments)
    except Exception as error:
        return error


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SPACES)
def test_aliens_are_refused_by_the_error_that_torch_raises(name):
    wrong = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for public, ours, theirs in functions(name):
            for alien in (None, "nonsense", object()):
                for count in (1, 2, 3, 4, 8):
                    mine = outcome(ours, [alien] * count)
                    if mine is not None and not isinstance(mine, INTERNAL):
                        continue
                    other = outcome(theirs, [alien] * count)
                    if mine is None and (other is None or public in TAKEN):
                        continue
                    if not isinstance(mine, type(other)):
                        wrong.append((public, type(alien).__name__, count, repr(mine)[:60]))
    assert not wrong
