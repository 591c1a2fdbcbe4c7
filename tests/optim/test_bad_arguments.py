# ruff: noqa: E501
"""Wrong arguments of optimizers, schedules, loaders and samplers: the errors are of torch's types."""

import os
import re
import warnings
import zlib

import pytest

import tensorplug as tp

from . import bad_arguments

EVERY = 1 if "TENSORPLUG_FUZZ" in os.environ else 6

#: Labels of calls that raise otherwise than in torch, by the reason.
OTHERWISE = {
    "nan is no rate, where torch takes what is not below 0": r"=nan",
    "computed when it is made, where torch fails at a later step": r"(CosineAnnealing|Linear|Constant|Polynomial)LR\((T_max|total_iters|power)=",
    "checked first, where torch fails in computing with it or in the text of its error": r"(OneCycleLR\((total_steps|pct_start)|ReduceLROnPlateau\((mode|threshold_mode))=",
    "a bool is no number": r"num_samples=True",
    "not None, and no error of a type": r"weights=None",
    "torch looks at it in a worker": r"prefetch_factor=0",
    "the seed is taken as a whole number": r"seed=1\.5",
}  # fmt: skip
LEAKS = re.compile(r"call_binary|__init__\(\)|\baxis\b|build/sources|\b_array\b|core\.|<locals>")


def attempt(function, module):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            function(module)
        except Exception as error:
            return error
    return None


def kind(error):
    return next((c.__name__ for c in type(error).__mro__ if c.__module__ == "builtins"), None)


def chosen():
    for label, function in bad_arguments.cases():
        if zlib.crc32(label.encode()) % EVERY == 0:
            yield label, function


def test_messages_show_nothing_inside():
    count, leaks = 0, []
    for label, function in chosen():
        error = attempt(function, tp)
        count += 1
        if error is not None and LEAKS.search(str(error)):
            leaks.append((label, str(error)))
    assert not leaks
    assert count > 500


def test_types_are_those_of_torch():
    torch = pytest.importorskip("torch")
    known = re.compile("|".join(OTHERWISE.values()))
    wrong = []
    for label, function in chosen():
        expected, got = attempt(function, torch), attempt(function, tp)
        same = (expected is None) == (got is None) and kind(expected) == kind(got)
        if not same and not known.search(label):
            wrong.append((label, repr(expected)[:100], repr(got)[:100]))
    assert not wrong
