"""Random calls of the operators of torch's database in every dtype, order of memory and mode, beside torch.

Arguments are permuted, channels last, expanded, strided, flipped, conjugated, views with an offset, without
dimensions or elements, leaves or not; a call runs plainly, under ``no_grad`` or in inference mode. Prints how
many there were and what differs for none of the reasons that are known: what one of the two refuses, the type
of the error, values, dtype, shape, strides of views, which arguments a write to the result reaches,
``requires_grad``, ``is_leaf``, ``is_inference``, and gradients. The arguments are the seeds.
"""

# ruff: noqa: SIM905  words are easier to read

import itertools
import json
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from random_arguments import mode_of

import tensorplug as tp

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks import database

CALLS = 2  # of an operator and a seed
DTYPES = "bool uint8 int8 int16 int32 int64 float16 bfloat16 float32 float64 complex64 complex128".split()
ORDERS = (
    *["plain"] * 3, "permuted", "stepped", "expanded", "offset", "flipped", "channels_last", "conj", "view",
)  # fmt: skip
MODES = ("plain", "plain", "no_grad", "inference_mode")
DRAWN = (
    "rand", "dropout", "bernoulli", "normal", "multinomial", "exponential", "cauchy", "geometric",
    "uniform", "rrelu", "empty", "log_normal", "fractional",
)  # fmt: skip
#: By the last place of a dtype, how near results are.
NEAR = {
    "float16": 2e-2,
    "bfloat16": 1e-1,
    "float32": 1e-3,
    "complex64": 1e-3,
    "float64": 1e-6,
    "complex128": 1e-6,
}


def laid_out(tensor, order, library):
    """Return a tensor's numbers in some order of memory."""
    if not tensor.ndim:
        return tensor
    if order == "permuted":
        return tensor.transpose(0, -1).contiguous().transpose(0, -1)
    if order == "stepped":
        return library.stack([tensor, tensor], -1).flatten(-2)[..., ::2]
    if order == "expanded" and tensor.shape[0]:
        return tensor[:1].expand(tensor.shape)
    if order == "offset":
        return library.cat([tensor[:1], tensor])[tensor[:1].shape[0] :]
    if order == "flipped":
        return tensor[list(range(len(tensor)))[::-1]]
    if order == "channels_last" and tensor.ndim in (4, 5):
        form = library.channels_last if tensor.ndim == 4 else library.channels_last_3d
        return tensor.contiguous(memory_format=form)
    if order == "gaps" and tensor.ndim in (4, 5):
        return laid_out(tensor.repeat_interleave(2, -1), "channels_last", library)[..., ::2]
    if order == "conj":
        return tensor.conj()
    if order == "empty":
        return tensor[:0]
    if order == "scalar":
        return tensor[(0,) * tensor.ndim] if tensor.numel() else tensor
    if order == "view":
        return tensor.clone()[...]
    return tensor


def flat(value, library):
    """Return the tensors of a result."""
    if isinstance(value, library.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [tensor for item in value for tensor in flat(item, library)]
    return []


def seen(tensor, strided):
    """Return what can be compared of a tensor."""
    dtype = str(tensor.dtype).rpartition(".")[2]
    plain = tensor.detach().resolve_conj().resolve_neg()
    if dtype in ("float16", "bfloat16"):
        plain = plain.float()
    stride = [s for s, n in zip(tensor.stride(), tensor.shape, strict=True) if n != 1]
    return {
        "dtype": dtype,
        "shape": tuple(tensor.shape),
        "stride": stride if strided and tensor.numel() else None,
        "values": np.array(plain.tolist()),
        "requires_grad": tensor.requires_grad,
        "is_leaf": tensor.is_leaf,
        "is_inference": tensor.is_inference(),
    }


def is_shown(result, arguments):
    """Return whether a result is a view of an argument, or one of them."""
    bases = [a if a._base is None else a._base for a in arguments]
    return any(result is a for a in arguments) or any(result._base is base for base in bases)


def reached(results, arguments, library):
    """Return which arguments a write to each result reaches."""
    found = []
    for result in results:
        if not result.numel() or any(
            s == 0 and n > 1 for s, n in zip(result.stride(), result.shape, strict=True)
        ):
            found.append(None)
            continue
        before = [argument.detach().clone() for argument in arguments]
        with library.inference_mode(result.is_inference()), library.no_grad():
            result.copy_(~result if result.dtype == library.bool else result + 1)
            found.append(
                [
                    bool(((a != b) & ~((a != a) & (b != b))).any())
                    for a, b in zip(before, arguments, strict=True)
                ]
            )
    return found


def outcome(library, function, args, kwargs, graded, mode):
    """Return what a call comes to, or the types of its error and what it says."""
    try:
        leaves = []

        def leaf(value):
            if not isinstance(value, library.Tensor):
                return value
            if graded and (value.is_floating_point() or value.is_complex()):
                value = value.detach().requires_grad_()
            leaves.append(value)
            return value

        args, kwargs = database.converted((args, kwargs), leaf)
        with mode_of(library, mode):
            results = flat(function(*args, **kwargs), library)
        made = [seen(result, is_shown(result, leaves)) for result in results]
        gradients = None
        if any(result.requires_grad for result in results):
            loss = sum(weight_of(result, library) for result in results if result.requires_grad)
            gradients = [
                None if g is None else seen(g, False)
                for g in library.autograd.grad(
                    loss, [x for x in leaves if x.requires_grad], allow_unused=True
                )
            ]
        aliased = reached(results, leaves, library)
        return {"made": made, "aliased": aliased, "gradients": gradients}
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__], str(error)[:150]


def weight_of(result, library):
    """Return a real number that a result's elements add up to with weights."""
    weights = library.tensor(np.cos(np.arange(result.numel()) * 2.0) + 0.25).reshape(result.shape)
    total = (result * weights.to(result.dtype)).sum()
    return total.real if total.is_complex() else total


def different(theirs, ours, dtype):
    """Return the name of what differs, or None."""
    if isinstance(theirs, tuple) or isinstance(ours, tuple):
        if isinstance(theirs, tuple) and isinstance(ours, tuple):
            kind = theirs[0][0]
            return None if kind in ours[0] or kind.startswith("_") else "error"
        return "torch refuses" if isinstance(theirs, tuple) else "refused"
    if len(theirs["made"]) != len(ours["made"]):
        return "results"
    for a, b in zip(theirs["made"], ours["made"], strict=True):
        for name in a:
            if not alike(a[name], b[name], name, dtype):
                return name
    if theirs["aliased"] != ours["aliased"]:
        return "aliased"
    if (theirs["gradients"] is None) != (ours["gradients"] is None):
        return "gradients"
    for a, b in zip(theirs["gradients"] or (), ours["gradients"] or (), strict=True):
        if (a is None) != (b is None):
            return "gradient of None"
        for name in ("dtype", "shape", "values"):
            if a is not None and not alike(a[name], b[name], name, dtype):
                return f"gradient's {name}"
    return None


def alike(a, b, name, dtype):
    if name == "stride":
        return a is None or b is None or a == b
    if name != "values":
        return a == b
    near = NEAR.get(dtype, 1e-3)
    return a.shape == b.shape and np.allclose(a, b, near, near, equal_nan=True)


#: What torch says where it has no kernel or no derivative, or asks for an order of memory.
LACKS = (
    "not implemented", "MKL FFT", "not differentiable", "automatic differentiation", "contiguous",
    "view size is not compatible", "unresolved conjugated", "not supported", "expected scalar type",
    "unallocated storage", "`shifts` required", "at least one element", "invalid slice", "sum to zero",
    "cannot compute the inf norm",
)  # fmt: skip
#: Results that are one of many, or drawn: signs, phases, bases, which of equal elements.
ONE_OF_MANY = (
    "linalg.svd", "svd", "linalg.eig", "linalg.qr", "qr", "lu", "linalg.lu", "geqrf", "ormqr", "pca",
    "linalg.householder", "linalg.ldl", "linalg.lstsq", "linalg.cholesky", "cholesky", "triangular_solve",
    "pinverse", "linalg.pinv", "kthvalue", "topk", "mode", "sort", "argsort", "msort", "median", "nanmedian",
    "min (", "max (", "argmax", "argmin", "masked.amin", "masked.amax", "logcumsumexp", "searchsorted",
    "histogram",
    "nn.functional.multi_head_attention", "nn.functional.scaled_dot_product_attention",
)  # fmt: skip
#: torch rounds half precision on the way there, counts what lies at a bin's edge in another bin, wraps areas
#: of integers around, reads strided weights as if they were not, or differs as docs/deviations.md says.
VALUES = (
    "matrix_exp", "nn.functional.conv_transpose", "histc", "trapz", "trapezoid", "cumulative_trapezoid",
    "native_group_norm", "nn.functional.soft_margin_loss", "nn.functional.ctc_loss", "polygamma", "cov",
    "special.polygamma", "ldexp", "addbmm",
)  # fmt: skip
#: torch takes batches of none that do not fit, or makes one number of none.
NOTHING = (
    "linalg.", "cholesky", "nn.functional.scaled_dot", "median", "nanmedian", "view_as_complex",
)  # fmt: skip
#: Where views are made of a copy, or copies of a view.
OWN_MEMORY = ("conj", "adjoint", "masked.prod", "unsafe_")
#: Options of a prototype, a module of torch's, memory that no result shows, positions in half precision.
LEFT_OUT = (
    "nn.functional.linear_cross_entropy", "nn.functional.triplet_margin_with_distance_loss", "as_strided",
    "nn.functional.grid_sample", "grid_sampler", "linalg.pinv",
)  # fmt: skip
warnings.simplefilter("ignore")
OPERATORS = [
    operator
    for operator in database.operators(tp, torch)[0]
    if not any(word in operator.name for word in DRAWN) and not operator.name.startswith(LEFT_OUT)
]


def known(operator, what, theirs, ours, orders):
    """Return whether a call differs for a reason that is known."""
    name, label, nothing = operator.name, operator.label, "empty" in orders
    reasons = {
        "torch refuses": lambda: any(words in theirs[1] for words in LACKS),
        # torch takes batches of none that do not fit, and leaves in inference mode.
        "refused": lambda: (
            "no derivative is known with respect to" in ours[1]
            or "more than one element of the written-to" in ours[1]
            or "complex32" in ours[1]
            or name.startswith("resize_")
            or (name == "nn.functional.local_response_norm" and "'Long'" in ours[1])
            or (nothing and name.startswith(NOTHING))
        ),
        # Of no dimensions or elements torch has no words of its own.
        "error": lambda: nothing or "scalar" in orders,
        "values": lambda: label.startswith(ONE_OF_MANY + VALUES) or (nothing and "margin" in name),
        "gradient's values": lambda: label.startswith(ONE_OF_MANY + VALUES),
        # Derivatives that torch lacks; memory of its own, here or there.
        "requires_grad": lambda: nothing or name.startswith(("special.", "native_", *OWN_MEMORY)),
        "is_inference": lambda: nothing or name.startswith(OWN_MEMORY),
        "is_leaf": lambda: nothing,
        # A sum over one operand alone makes int64 of integers in torch.
        "dtype": lambda: name == "einsum",
        "aliased": lambda: "conj" in orders and name.startswith("unsafe_"),
        # Of nothing, or where the input is ignored.
        "gradient of None": lambda: (
            nothing or name in ("linalg.householder_product", "linalg.vector_norm", "ormqr", "addr", "addmv")
            or name in ("addmm", "addbmm", "baddbmm")
        ),
    }  # fmt: skip
    return what in reasons and reasons[what]()


def drawn_call(rng, operator):
    """Return the arguments of a call as torch has them, with the order of each tensor, or None."""
    dtypes = sorted(operator.info.supported_dtypes("cpu"), key=str)
    dtype = rng.choice([d for d in dtypes if str(d).removeprefix("torch.") in DTYPES] or [None])
    if dtype is None:
        return None
    drawn = operator.info.sample_inputs("cpu", dtype, requires_grad=False)
    sample = rng.choice(list(itertools.islice(drawn, 60)))
    given = ((sample.input, *sample.args), dict(sample.kwargs))
    count = len(list(database.tensors(given, torch)))
    orders = [rng.choice(ORDERS) if rng.random() < 0.7 else "plain" for _ in range(count)]
    if rng.random() < 0.2 and operator.name != "nn.functional.pdist":  # torch ends the process
        orders = [rng.choice(("empty", "scalar"))] * count
    return dtype, given, orders


def both(operator, given, orders, graded, mode):
    """Return what the call comes to in both libraries."""
    own = database.converted(given, lambda value: database.to_ours(value, tp, torch))
    outcomes = []
    for library, arguments, function in (
        (torch, given, operator.theirs),
        (tp, own, operator.ours),
    ):
        places = iter(orders)

        def placed(value, library=library, places=places):
            if not isinstance(value, library.Tensor):
                return value
            return laid_out(value.detach().clone(), next(places), library)

        args, kwargs = database.converted(arguments, placed)
        outcomes.append(outcome(library, function, args, kwargs, graded, mode))
    return outcomes


def main():
    count, differ = 0, []
    for seed, operator, number in itertools.product(sys.argv[1:], OPERATORS, range(CALLS)):
        rng = random.Random(f"{seed} {operator.label} {number}")
        torch.manual_seed(int(seed))
        call = drawn_call(rng, operator)
        if call is None:
            continue
        dtype, given, orders = call
        graded, mode = rng.random() < 0.5, rng.choice(MODES)
        theirs, ours = both(operator, given, orders, graded, mode)
        count += 1
        what = different(theirs, ours, str(dtype).removeprefix("torch."))
        if what and not known(operator, what, theirs, ours, orders):
            shapes = [tuple(t.shape) for t in database.tensors(given, torch)]
            words = [v[1][:90] if isinstance(v, tuple) else "" for v in (theirs, ours)]
            plain = database.converted(given, lambda v: "…" if isinstance(v, torch.Tensor) else v)
            how = "leaves" if graded else ""
            differ.append(
                f"{what} | {operator.label} {dtype} {shapes} {orders} {mode} {how} {plain} {words}"
            )
    sys.stdout.write("\n" + json.dumps([count, differ]) + "\n")


if __name__ == "__main__":
    main()
