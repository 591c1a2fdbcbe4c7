"""Operators of torch's database at the edges of their dtypes, beside torch.

Elements of samples become zeros of either sign, infinities, NaN, the largest, smallest and denormal numbers
of the dtype, the least and greatest integers. Prints how many calls there were and what differs for none of
the reasons that are known. The arguments are the seeds.
"""

import itertools
import json
import math
import random
import sys
import warnings
from pathlib import Path

import numpy as np
import torch
from random_layouts import DRAWN, NEAR, flat

import tensorplug as tp

sys.path.append(str(Path(__file__).parents[2]))

from benchmarks import database

DTYPES = ("float32", "float64", "float16", "bfloat16", "complex64", "int64", "int8", "uint8")
LARGEST = 2000  # elements
#: Sums and products of numbers that cancel or overflow depend on the order, which is left to kernels; so do
#: factorizations, and what is left of them. Of equal numbers any may be named.
BY_ORDER = (
    "linalg.", "fft.", "masked.", "svd", "qr", "lu", "eig", "chole", "pinverse", "lstsq", "geqrf",
    "ormqr", "matrix_exp", "det", "logdet", "inverse", "triangular", "pca", "stft", "istft", "addbmm",
    "baddbmm", "bmm", "addmm", "addmv", "mm", "mv", "matmul", "__rmatmul__", "chain_matmul", "dot",
    "vdot", "inner", "tensordot", "einsum", "outer", "cov", "corrcoef", "cross", "kron", "cdist",
    "kthvalue", "topk", "sub", "rsub", "norm", "cumsum", "cumprod", "logcumsumexp", "sum_to_size",
    "trace", "dist", "nansum", "sum", "mean", "nanmean", "prod", "var", "std", "addr", "diff", "gradient",
    "trapz", "trapezoid", "cumulative_trapezoid", "histogram", "renorm", "native_layer_norm",
    "native_group_norm", "native_batch_norm", "grid_sampler", "searchsorted", "bucketize", "index_reduce",
    "scatter_reduce", "index_add", "scatter_add", "as_strided", "logsumexp", "logaddexp", "mode",
    "unfold", "segment_reduce", "sort", "argsort", "msort", "unique", "put", "roots", "heaviside",
    "reduce", "lerp",
)  # fmt: skip
#: Of torch.nn.functional those that go element by element.
POINTWISE = (
    "relu", "relu6", "elu", "celu", "selu", "gelu", "silu", "mish", "hardtanh", "hardsigmoid",
    "hardswish", "hardshrink", "softshrink", "softplus", "softsign", "tanhshrink", "logsigmoid",
    "threshold", "leaky_relu", "prelu", "pad", "glu", "max_pool1d", "max_pool2d", "pixel_shuffle",
    "l1_loss", "dropout", "embedding", "one_hot",
)  # fmt: skip
#: What differs, and why; docs/deviations.md says it to users.
KNOWN = {
    "igamma": "NaN stays",
    "igammac": "NaN stays",
    "fmod": "the rest",
    "remainder": "the rest",
    "i0": "infinite, as it grows",
    "special.i1": "infinite, as it grows",
    "log1p": "of complex infinities",
    "sgn": "of complex infinities",
    "polygamma": "the limit at infinity",
    "special.polygamma": "the limit at infinity",
    "nn.functional.gelu": "the limit at infinity",
    "special.zeta": "the limit",
    "special.airy_ai": "the limit at infinity",
    "special.modified_bessel_i0": "infinite, as it grows",
    "special.modified_bessel_i1": "infinite, as it grows",
    "special.modified_bessel_k0": "the limit at infinity",
    "special.modified_bessel_k1": "the limit at infinity",
    "special.scaled_modified_bessel_k0": "the limit at infinity",
    "special.scaled_modified_bessel_k1": "the limit at infinity",
    "pow": "of complex infinities",
    "square": "of complex infinities",
    "ldexp": "of complex infinities",
    "float_power": "of complex infinities",
    "histc": "which of two bins a denormal number falls into",
    "addcmul": "may overflow on the way, by the order of its products",
    "addcdiv": "as addcmul",
    "gcd": "torch ends the process",
    "lcm": "torch ends the process",
}


#: Of NaN torch gives what stood in memory.
POLYNOMIALS = ("chebyshev", "hermite", "laguerre", "legendre")


def edges(dtype):
    """Return the numbers at a dtype's edges."""
    if not (dtype.is_floating_point or dtype.is_complex):
        known = torch.iinfo(dtype)
        # The least over -1 ends the process in torch.
        return [0, 1, 2, 3, known.max, known.max - 1, known.min]
    known = torch.finfo(dtype)
    denormal = known.smallest_normal * known.eps
    some = [0.0, math.inf, known.max, known.smallest_normal, denormal, 1.0, known.max**0.5, 100.0]
    return [math.nan, *some, *[-x for x in some]]


def at_edges(rng, tensor, dtype):
    """Return a tensor of which some elements are at the edges."""
    if tensor.dtype is not dtype or not tensor.numel():
        return tensor
    there, rate = edges(dtype), rng.choice((0.3, 0.9))

    def number():
        drawn = rng.choice(there)
        return complex(drawn, rng.choice(there)) if dtype.is_complex else drawn

    values = [number() if rng.random() < rate else x for x in tensor.detach().reshape(-1).tolist()]
    return torch.tensor(values, dtype=dtype).reshape(tensor.shape)


def numbers(tensor):
    plain = tensor.detach()
    plain = plain.resolve_conj().resolve_neg() if isinstance(tensor, torch.Tensor) else plain
    wide = plain.float() if str(plain.dtype).endswith("float16") else plain
    return np.array(wide.tolist())


def alike(a, b, near):
    """Return whether the parts of two results are near, or infinite or NaN together."""
    if a.shape != b.shape:
        return False
    if a.dtype.kind != "c":
        return np.allclose(a, b, near, near, equal_nan=True)
    return alike(a.real, b.real, near) and alike(a.imag, b.imag, near)


def outcome(library, function, args, kwargs):
    try:
        return [numbers(t) for t in flat(function(*args, **kwargs), library)]
    except Exception as error:
        return [kind.__name__ for kind in type(error).__mro__]


def is_asked(operator):
    name = operator.name
    if name.startswith("nn.functional."):
        return name.removeprefix("nn.functional.") in POINTWISE and name not in KNOWN
    return not name.startswith(BY_ORDER) and name not in KNOWN


def difference(rng, operator, dtype):
    """Return whether a call was made, and what differs of it, if anything."""
    drawn = operator.info.sample_inputs("cpu", dtype, requires_grad=False)
    sample = rng.choice(list(itertools.islice(drawn, 12)))
    given = ((sample.input, *sample.args), dict(sample.kwargs))
    if sum(t.numel() for t in database.tensors(given, torch)) > LARGEST:
        return False, None
    whole = not (dtype.is_floating_point or dtype.is_complex)
    first = given[0][0]

    def change(value):
        if not isinstance(value, torch.Tensor) or (whole and value is not first):
            return value  # integers in other places may be positions
        changed = at_edges(rng, value, dtype)
        if any(word in operator.name for word in POLYNOMIALS):
            return changed.where(changed == changed, 2)
        return changed

    given = database.converted(given, change)
    own = database.converted(given, lambda value: database.to_ours(value, tp, torch))
    theirs, ours = outcome(torch, operator.theirs, *given), outcome(tp, operator.ours, *own)
    refused = [bool(side) and isinstance(side[0], str) for side in (theirs, ours)]
    name = str(dtype).removeprefix("torch.")
    if any(refused):
        same = refused[0] == refused[1] or refused[0]
        return True, None if same else (ours, given)
    near = max(NEAR.get(name, 1e-3), 1e-6)
    same = len(theirs) == len(ours) and all(map(lambda a, b: alike(a, b, near), theirs, ours))
    return True, None if same else (theirs, ours, given)


def main():
    warnings.simplefilter("ignore")
    count, differ = 0, []
    operators = [
        o
        for o in database.operators(tp, torch)[0]
        if is_asked(o) and not any(word in o.name for word in DRAWN)
    ]
    for seed, operator in itertools.product(sys.argv[1:], operators):
        rng = random.Random(f"{seed} {operator.label}")
        torch.manual_seed(int(seed))
        supported = operator.info.supported_dtypes("cpu")
        known = [d for name in DTYPES if (d := getattr(torch, name)) in supported]
        for dtype in rng.sample(known, min(len(known), 3)):
            called, found = difference(rng, operator, dtype)
            count += called
            if found:
                differ.append(f"{operator.label} {dtype} {found}"[:500])
    sys.stdout.write("\n" + json.dumps([count, differ]) + "\n")


if __name__ == "__main__":
    main()
