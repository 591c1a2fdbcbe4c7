"""Random calls of the operators of torch's database in place and with ``out=``, with both libraries.

What is written to has the result's shape or another, its dtype or another, lies in its own order of memory,
is an input or shows one, and requires grad or not. Prints how many there were and what differs for none of
the reasons that are known: what one of the two refuses, the type of the error, what is written, its dtype,
shape and strides. The arguments are the seeds.
"""

import itertools
import json
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from random_arguments import TOLERANCES

import tensorplug as tp

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks import database

DTYPES = ("float32", "float32", "float64", "int64", "complex64", "bool", "float16")
TARGETS = (
    "result",
    "larger",
    "smaller",
    "empty",
    "turned",
    "stepped",
    "dtype",
    "input",
    "shown",
    "leaf",
)
SELVES = (
    "plain",
    "turned",
    "stepped",
    "expanded",
    "shown",
    "leaf",
    "not a leaf",
    "twice",
    "broadcast",
)
DRAWN = ("rand", "dropout", "bernoulli", "normal", "multinomial", "exponential", "cauchy", "geometric",
         "uniform", "rrelu", "empty", "log_normal")  # fmt: skip


def first_of(result, library):
    """Return a result, if it is one tensor."""
    return result if isinstance(result, library.Tensor) else None


def target_for(rng_choice, other, result, first, library):
    """Return what ``out=`` is given for a result."""
    if rng_choice == "result":
        return library.empty_like(result)
    if rng_choice == "larger":
        return library.zeros((*result.shape, 2), dtype=result.dtype)
    if rng_choice == "smaller":
        return library.zeros(1, dtype=result.dtype)
    if rng_choice == "empty":
        return library.zeros(0, dtype=result.dtype)
    if rng_choice in ("turned", "stepped"):
        made = library.zeros(tuple(result.shape)[::-1], dtype=result.dtype)
        return made.permute(tuple(range(result.ndim - 1, -1, -1)))
    if rng_choice == "stepped":
        return library.zeros((*result.shape, 2), dtype=result.dtype)[..., 0]
    if rng_choice == "dtype":
        return library.zeros(tuple(result.shape), dtype=getattr(library, other))
    if rng_choice == "input":
        return first
    if rng_choice == "shown":
        return first[...]
    made = library.zeros(tuple(result.shape), dtype=result.dtype)
    return made.requires_grad_() if made.is_floating_point() or made.is_complex() else made


def self_of(choice, first, library):
    """Return a first argument that is written to."""
    if choice in ("turned", "stepped") and first.ndim > 1:
        return first.transpose(0, -1).contiguous().transpose(0, -1)
    if choice == "stepped" and first.ndim:
        return first.repeat_interleave(2, -1)[..., ::2]
    if choice == "expanded" and first.ndim and first.shape[0]:
        return first[:1].expand(first.shape)
    if choice == "shown":
        return first.clone()[...]
    if choice in ("leaf", "not a leaf") and (first.is_floating_point() or first.is_complex()):
        made = first.clone().requires_grad_()
        return made if choice == "leaf" else made * 1
    if choice == "broadcast" and first.ndim:
        return first[:1].clone()
    return first


def seen(value, library):
    """Return what can be compared of the tensors in a value."""
    if isinstance(value, library.Tensor):
        dtype = str(value.dtype).rpartition(".")[2]
        plain = value.detach().resolve_conj().resolve_neg()
        if dtype in ("float16", "bfloat16"):
            plain = plain.float()
        stride = [s for s, n in zip(value.stride(), value.shape, strict=True) if n != 1]
        return (
            dtype,
            tuple(value.shape),
            stride if value.numel() else None,
            np.array(plain.tolist()),
        )
    if isinstance(value, (list, tuple)):
        return [seen(item, library) for item in value]
    return None


def outcome(library, operator, form, choice, other, args, kwargs):
    """Return what a call comes to: what was written and what the arguments are then, or the error's types."""
    function = operator.theirs if library is torch else operator.ours
    args = database.converted(args, lambda t: t.clone() if isinstance(t, library.Tensor) else t)
    first = args[0]
    try:
        if form == "out":
            with library.no_grad():
                result = function(*args, **kwargs)
            if not isinstance(result, library.Tensor):
                return None
            out = target_for(choice, other, result, first, library)
            same_shape = out.shape == result.shape
            if choice in ("input", "shown") and not same_shape:
                return None  # torch may resize what it still reads, and write where no memory is
            made = function(*args, **kwargs, out=out)
            # What gets another shape has memory of its own here, and lies row by row.
            where = seen(out if same_shape else out.contiguous(), library)
            return made is out, where, seen(args, library) if same_shape else None
        target = self_of(choice, first, library)
        args = (target, *args[1:])
        if choice == "twice":
            args = database.converted(
                args, lambda t: target if getattr(t, "shape", None) == target.shape else t
            )
        method = getattr(library.Tensor, operator.info.inplace_variant.__name__)
        made = method(*args, **kwargs)
        return made is target, seen(target, library), target.requires_grad
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__], str(error)[:100]


def same(theirs, ours):
    if isinstance(theirs, np.ndarray):
        near = TOLERANCES["float16"]  # what is written where, and in which dtype, is what is asked
        return theirs.shape == ours.shape and np.allclose(theirs, ours, *near, equal_nan=True)
    if isinstance(theirs, (tuple, list)):
        return (
            isinstance(ours, (tuple, list))
            and len(theirs) == len(ours)
            and all(itertools.starmap(same, zip(theirs, ours, strict=True)))
        )
    return theirs == ours


def refused(value):
    return isinstance(value, tuple) and isinstance(value[0], list)


def alike(theirs, ours):
    if refused(theirs):
        kind = theirs[0][0]
        return refused(ours) and (kind in ours[0] or kind.startswith("_"))
    return not refused(ours) and same(theirs, ours)


def known(name, form, choice, theirs, ours):
    """Return whether a call differs for a reason that is known."""
    if refused(theirs) and any(
        words in theirs[1] for words in ("some elements of the input", "refers to a single memory")
    ):
        return True  # computed as if the input had been read first
    if refused(ours) and "more than one element of the written-to" in ours[1]:
        return True  # expanded tensors are not written to
    if name in ("addbmm", "resize_") and form == "in place":
        return True  # get another shape; what is new may hold anything
    if choice == "dtype" and refused(theirs) and name in ("lerp", "linalg.matrix_power"):
        return True  # converted, as those of other ops
    if name in ("nn.functional.gelu", "ormqr") and not refused(ours):
        return not refused(theirs)  # how torch lays results out is a matter of its kernels
    if name == "matmul" and refused(theirs) and choice in ("turned", "stepped"):
        return True  # of nothing
    if choice == "twice" or (form == "out" and choice in ("input", "shown")):
        # The same, in no order that is defined; or of a shape that is changed while it is read.
        return not refused(ours)
    if choice == "leaf":  # torch has no derivatives for some, and looks at no gradients for others
        return refused(ours) and not refused(theirs)
    if name.startswith(("linalg.", "fft.", "narrow_copy")) and not refused(ours):
        return not refused(theirs)  # how torch lays results out is a matter of its kernels
    reasons = {
        "logcumsumexp": True,  # of complex numbers, up to a period
        "cholesky_inverse": True,
        "nn.functional.avg_pool3d": choice
        == "turned",  # the order of what is made of channels last
    }
    return reasons.get(name, False)


warnings.simplefilter("ignore")
OPERATORS = [
    operator
    for operator in database.operators(tp, torch)[0]
    if not any(word in operator.name for word in DRAWN)
]
count, differ = 0, []
for seed, operator in itertools.product(sys.argv[1:], OPERATORS):
    rng = random.Random(f"{seed} {operator.label}")
    torch.manual_seed(int(seed))
    method = getattr(operator.info.inplace_variant, "__name__", "")
    forms = ["out"] if operator.info.supports_out else []
    if hasattr(torch.Tensor, method) and hasattr(tp.Tensor, method):
        forms.append("in place")
    for form in forms * 4:
        dtype = getattr(torch, rng.choice(DTYPES))
        if dtype not in operator.info.supported_dtypes("cpu"):
            continue
        drawn = list(operator.info.sample_inputs("cpu", dtype, requires_grad=False))
        sample = rng.choice(drawn)
        if not isinstance(sample.input, torch.Tensor):
            continue
        choice, other = rng.choice(TARGETS if form == "out" else SELVES), rng.choice(DTYPES)
        args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
        own_args, own_kwargs = database.converted(
            (args, kwargs), lambda value: database.to_ours(value, tp, torch)
        )
        theirs = outcome(torch, operator, form, choice, other, args, kwargs)
        ours = outcome(tp, operator, form, choice, other, own_args, own_kwargs)
        count += 1
        if not alike(theirs, ours) and not known(operator.name, form, choice, theirs, ours):
            shapes = [tuple(t.shape) for t in database.tensors(args, torch)]
            what = [str(v[1])[:90] if refused(v) else "" for v in (theirs, ours)]
            said = other if choice == "dtype" else ""
            differ.append(f"{operator.label} {form} {choice} {said} {dtype} {shapes} {what}")
sys.stdout.write("\n" + json.dumps([count, differ]) + "\n")
