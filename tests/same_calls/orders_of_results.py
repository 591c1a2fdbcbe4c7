"""The order of memory of results beside torch's, over the operators of its database and orders of arguments.

Where torch's result lies row by row a program may ``view`` it in another shape, so ours must lie so, too;
where torch's lies in another order and ours row by row, no program is refused. Prints how many results were
seen, and which are dense here in another order than in torch, for none of the reasons that are known.
"""

import itertools
import json
import sys
import warnings

import torch
from random_layouts import OPERATORS, database, flat, laid_out

import tensorplug as tp

SAMPLES = 6  # of an operator, the first ones
ORDERS = ("permuted", "stepped", "expanded", "channels_last", "gaps")
_THIRD = "images of three dimensions lie in rows in torch, here as the input does"
_AS_ONE = "torch pools images of one dimension as of two"
_SUMS = "a reduction leaves the dimensions in the order of the array library"
_SECOND = "the first operand broadcasts, and the second decides"
_LIBRARY = "as the library that computes it leaves it"
#: Operators whose results lie otherwise, and why.
KNOWN = {
    "nn.functional.conv_transpose3d": "oneDNN's choice, by the weight",
    "nn.functional.conv1d": "in rows, sums over long kernels would be as far off as torch's",
    "nn.functional.avg_pool1d": _AS_ONE,
    "nn.functional.adaptive_avg_pool1d": _AS_ONE,
    "nn.functional.adaptive_max_pool1d": _AS_ONE,
    "nn.functional.batch_norm": _THIRD,
    "native_batch_norm": _THIRD,
    "nn.functional.pad": "circular padding of images that lie channels last does so",
    "nn.functional.scaled_dot_product_attention": "the heads of a position lie beside each other",
    "masked_fill": _SECOND,
    "ldexp": _SECOND,
    "clamp": _SECOND,
    "chalf": "an expanded tensor, in the order of its last dimensions",
    "var": _SUMS,
    "std": _SUMS,
    "var_mean": _SUMS,
    "std_mean": _SUMS,
    "rot90": "a copy of the turned view keeps the view's order",
    "nonzero": "a view, of one index per row",
    "linalg.solve": _LIBRARY,
    "linalg.solve_ex": _LIBRARY,
    "matmul": _LIBRARY,
    "lu_unpack": _LIBRARY,
    "cat": "of one tensor with gaps, in its order",
}


def made(operator, library, given, order):
    """Return the results of a call that are neither views nor arguments."""
    args, kwargs = database.converted(
        given,
        lambda value: (
            laid_out(value.detach().clone(), order, library)
            if isinstance(value, library.Tensor)
            else value
        ),
    )
    function = operator.theirs if library is torch else operator.ours
    results = flat(function(*args, **kwargs), library)
    given = [id(value) for value in database.tensors((args, kwargs), library)]
    return [None if r._base is not None or id(r) in given else r for r in results]


def outcomes(operator, given, order):
    """Return pairs of results, none where one of the libraries refuses the call."""
    own = database.converted(given, lambda value: database.to_ours(value, tp, torch))
    try:
        pairs = zip(
            made(operator, torch, given, order), made(operator, tp, own, order), strict=True
        )
        return [pair for pair in pairs if None not in pair and pair[0].layout == torch.strided]
    except Exception:
        return []


def calls(operator):
    """Return arguments as torch has them."""
    dtypes = operator.info.supported_dtypes("cpu")
    dtype = torch.float32 if torch.float32 in dtypes else min(dtypes, key=str, default=None)
    if dtype is None:
        return
    drawn = operator.info.sample_inputs("cpu", dtype, requires_grad=False)
    for sample in itertools.islice(drawn, SAMPLES):
        given = ((sample.input, *sample.args), dict(sample.kwargs))
        if max([t.ndim for t in database.tensors(given, torch)], default=0) > 1:
            yield given


def main():
    warnings.simplefilter("ignore")
    count, differ = 0, set()
    for operator in OPERATORS:
        for given, order in itertools.product(calls(operator), ORDERS):
            for theirs, ours in outcomes(operator, given, order):
                count += 1
                if theirs.is_contiguous() and not ours.is_contiguous():
                    differ.add((operator.name, order, f"{list(ours.shape)} {ours.stride()}"))
    told = [f"{name}, {order}: {how}" for name, order, how in sorted(differ) if name not in KNOWN]
    sys.stdout.write("\n" + json.dumps([count, told]) + "\n")


if __name__ == "__main__":
    main()
