"""Random calls of the functions of networks with both libraries: shapes that fit, or nearly, and options.

Prints how many there were and what differs for none of the reasons that are known: what one of the two
refuses, results, and the gradient of the first argument. The arguments are the seeds.
"""

import itertools
import json
import random
import sys
import warnings

import numpy as np
import torch
from random_arguments import (
    DTYPES,
    MODES,
    ORDERS,
    TOLERANCES,
    drawn,
    laid_out,
    mode_of,
    nearly,
    numbers,
    weighted,
)

import tensorplug as tp

REDUCED = {"reduction": ["none", "mean", "sum"]}
POOLED = {"stride": [None, 1, 0], "padding": [0, 1, 2, -1], "ceil_mode": [True, False]}
SPREAD = {"stride": [1, 2, 0], "padding": [0, 1, -1], "dilation": [1, 2, 0]}
#: Arguments, as what they hold (normal numbers, probabilities, signs, or ints below a number) and their
#: shapes; and the values that options are chosen from.
FUNCTIONS = {
    "linear": ("normal 4,2 normal 3,2 normal 3", {}),
    "bilinear": ("normal 4,2 normal 4,3 normal 5,2,3 normal 5", {}),
    "embedding": ("5 4,2 normal 5,3", {"padding_idx": [None, 0, -1, 5, -6]}),
    "cross_entropy": (
        "normal 4,3 3 4",
        {**REDUCED, "label_smoothing": [0.0, 0.1, 1.5], "ignore_index": [-100, 1]},
    ),
    "nll_loss": ("normal 4,3,2 3 4,2", REDUCED),
    "mse_loss": ("normal 4,3 normal 4,3", {"reduction": ["none", "mean", "sum", "foo"]}),
    "l1_loss": ("normal 4,3 normal 4,3", REDUCED),
    "smooth_l1_loss": ("normal 4,3 normal 4,3", {"beta": [1.0, 0.0, -1.0]}),
    "huber_loss": ("normal 4,3 normal 4,3", {"delta": [1.0, 0.0, -1.0]}),
    "binary_cross_entropy": ("chance 4,3 chance 4,3 chance 3", {}),
    "binary_cross_entropy_with_logits": ("normal 4,3 chance 4,3", REDUCED),
    "kl_div": ("normal 4,3 chance 4,3", {"reduction": ["none", "mean", "batchmean"]}),
    "hinge_embedding_loss": ("normal 4,3 sign 4,3", {}),
    "soft_margin_loss": ("normal 4,3 sign 4,3", REDUCED),
    "margin_ranking_loss": ("normal 4 normal 4 sign 4", REDUCED),
    "cosine_embedding_loss": ("normal 4,3 normal 4,3 sign 4", {"margin": [0.0, 0.5]}),
    "triplet_margin_loss": ("normal 4,3 normal 4,3 normal 4,3", {"swap": [True, False]}),
    "gaussian_nll_loss": ("normal 4,3 normal 4,3 chance 4,1", {"eps": [1e-6, 0.0, -1.0]}),
    "poisson_nll_loss": ("normal 4,3 chance 4,3", {"log_input": [True, False], "full": [True, False]}),
    "multi_margin_loss": ("normal 4,3 3 4", {"p": [1, 2, 3]}),
    "multilabel_margin_loss": ("normal 4,3 3 4,3", REDUCED),
    "layer_norm": ("normal 4,3,2", {"normalized_shape": [[3, 2], [3], [4, 3, 2], [1, 2], []]}),
    "rms_norm": ("normal 4,3,2", {"normalized_shape": [[3, 2], [2], [3], [4, 3, 2], [1, 2]]}),
    "group_norm": ("normal 4,6,2", {"num_groups": [1, 2, 3, 4]}),
    "batch_norm": (
        "normal 4,3,2 normal 3 chance 3 normal 3 normal 3",
        {"training": [True, False]},
    ),
    "local_response_norm": ("normal 4,6,2,2", {"size": [1, 2, 3]}),
    "normalize": ("normal 4,3", {"p": [1, 2, 0], "dim": [0, 1, -1, 2]}),
    "pixel_shuffle": ("normal 1,8,2,2", {"upscale_factor": [1, 2, 3, 0, -1]}),
    "pixel_unshuffle": ("normal 1,2,4,4", {"downscale_factor": [1, 2, 3, 0, -1]}),
    "channel_shuffle": ("normal 1,8,2,2", {"groups": [1, 2, 3, 0, -1]}),
    "conv1d": ("normal 2,4,7 normal 6,4,3 normal 6", {**SPREAD, "groups": [1, 2, 0]}),
    "conv2d": (
        "normal 2,4,7,7 normal 6,4,3,3 normal 6",
        {**SPREAD, "stride": [1, 2, (1, 2), (1,)], "padding": [0, 1, "same", "valid"]},
    ),
    "conv_transpose1d": (
        "normal 2,4,7 normal 4,3,3 normal 3",
        {"stride": [1, 2, 0], "padding": [0, 1, 5], "output_padding": [0, 1, 2, -1]},
    ),
    "conv_transpose2d": (
        "normal 2,4,5,5 normal 4,3,3,3 normal 3",
        {"stride": [1, 2, 3], "padding": [0, 1, 5], "output_padding": [0, 1, 2]},
    ),
    "max_pool1d": ("normal 2,4,7", {**POOLED, "kernel_size": [2, 3, 0, 8], "dilation": [1, 2, 0]}),
    "max_pool2d": ("normal 2,4,7,7", {**POOLED, "kernel_size": [2, 3, 0, 8, (2, 3), (2,)]}),
    "max_pool3d": ("normal 2,2,5,5,5", {**POOLED, "kernel_size": [2, 3, 6, (2, 3, 1)]}),
    "avg_pool1d": ("normal 2,4,7", {**POOLED, "kernel_size": [2, 3, 0, 8]}),
    "avg_pool2d": (
        "normal 2,4,7,7",
        {**POOLED, "kernel_size": [2, 3, 0, 8, (2, 3)], "divisor_override": [None, 1, 0, -2]},
    ),
    "lp_pool1d": ("normal 2,4,7", {"norm_type": [1, 2, 3], "kernel_size": [2, 3, 8]}),
    "adaptive_avg_pool1d": ("normal 2,4,7", {"output_size": [1, 3, 9, -1]}),
    "adaptive_avg_pool2d": ("normal 2,4,7,7", {"output_size": [1, 3, (3, None), (2,), -1]}),
    "adaptive_max_pool1d": ("normal 2,4,7", {"output_size": [1, 3, 9, -1]}),
    "adaptive_max_pool2d": ("normal 2,4,7,7", {"output_size": [1, 3, (3, None), (2,)]}),
    "max_unpool1d": ("normal 2,4,3 6 2,4,3", {"kernel_size": [2, 3]}),
    "max_unpool2d": ("normal 2,2,3,3 36 2,2,3,3", {"kernel_size": [2, 3]}),
    "unfold": ("normal 2,3,5,5", {**SPREAD, "kernel_size": [2, 3, (2, 3), 6, 0]}),
    "fold": ("normal 2,12,16", {"output_size": [5, (5, 5), 4, 0], "kernel_size": [2, (2, 2), 3]}),
    "pad": (
        "normal 2,3,4",
        {
            "pad": [[1, 1], [1, 2, 0, 1], [-1, 0], [-5, 0], [1], [5, 5], [1] * 6, [1] * 8, []],
            "mode": ["constant", "reflect", "replicate", "circular"],
        },
    ),
    "interpolate": (
        "normal 1,2,4,4",
        {
            "size": [None, 3, (3, 5), (3,), 0, -1],
            "scale_factor": [None, 2, 0.5, (2, 1.5), 0.0, -1.0],
            "mode": ["nearest", "bilinear", "bicubic", "area", "nearest-exact", "linear"],
            "align_corners": [None, True, False],
        },
    ),
    "affine_grid": ("normal 2,2,3", {"size": [[2, 1, 3, 3], [1, 1, 3, 3], [2, 1, 3], [2, 1, 0, 3]]}),
    "grid_sample": (
        "normal 2,1,3,3 normal 2,4,4,2",
        {"align_corners": [True, False], "mode": ["bilinear", "nearest", "bicubic"]},
    ),
    "one_hot": ("3 4", {"num_classes": [-1, 3, 2, 0, 5]}),
    "cosine_similarity": ("normal 4,3 normal 4,3", {"dim": [0, 1, -1, 2]}),
    "pairwise_distance": ("normal 4,3 normal 4,3", {"p": [1.0, 2.0], "keepdim": [True, False]}),
    "pdist": ("normal 4,3", {"p": [1.0, 2.0, 0.0, -1.0]}),
    "glu": ("normal 4,6", {"dim": [0, 1, -1, 2, -3]}),
    "softmax": ("normal 4,6", {"dim": [0, 1, -1, 2, -3]}),
    "prelu": ("normal 4,3,2 normal 3", {}),
    "softshrink": ("normal 4,3", {"lambd": [0.5, 0.0, -1.0]}),
    "hardtanh": ("normal 4,3", {"min_val": [-1.0, 1.0, 2.0], "max_val": [1.0]}),
    "scaled_dot_product_attention": (
        "normal 2,3,4,5 normal 2,3,6,5 normal 2,3,6,7",
        {"is_causal": [True, False]},
    ),
}  # fmt: skip


def called(library, name, tensors, options, graded, mode):
    """Return result and gradient, or None if the call is refused."""
    try:
        if graded:
            tensors[0] = tensors[0].detach().requires_grad_()
        with mode_of(library, mode):
            result = getattr(library.nn.functional, name)(*tensors, **options)
        if result.requires_grad:
            loss = weighted(result)
            (loss.real if loss.is_complex() else loss).backward()
    except Exception:
        return None
    gradient = tensors[0].grad
    return [numbers(result), None if gradient is None else numbers(gradient)]


def same(theirs, ours, dtype):
    if theirs is None or ours is None:
        return theirs is ours
    return all(
        [
            (a is None) is (b is None)
            and (
                a is None
                or (
                    a[0] == b[0]
                    and a[1].shape == b[1].shape
                    and np.allclose(a[1], b[1], *TOLERANCES[dtype], equal_nan=True)
                )
            )
            for a, b in zip(theirs, ours, strict=True)
        ]
    )


def pairs(padding):
    return zip(padding[::2], padding[1::2], strict=False)


def more(theirs, dtype, orders):
    """Return whether torch has no kernel for a dtype, or asks for another order of memory."""
    return theirs is None and (dtype not in ("float32", "float64") or set(orders) != {"plain"})


def known(name, arrays, options, dtype, orders):
    """Return whether a call differs for a reason that is known."""
    first, *others = [array.shape for array in arrays]
    empty = 0 in first
    reasons = {
        # The bias is a vector, the weight a matrix or more.
        "linear": lambda: len(others[-1]) != 1 or len(others[0]) != 2,
        "bilinear": lambda: len(others[-1]) != 1 or len(others[-2]) != 3,
        # Of other than vectors torch counts the elements, if it looks at them at all.
        # Running statistics are written to, if they are expanded, too.
        "batch_norm": lambda: (
            any(shape != first[1:2] for shape in others) or "expanded" in orders[1:3]
        ),
        # torch does not look at the shapes where nothing comes out.
        "scaled_dot_product_attention": lambda: empty or any(0 in shape for shape in others),
        # torch makes images without elements there, whose gradients are what its memory holds.
        "pad": lambda: any(before + after < 0 for before, after in pairs(options["pad"])),
        "max_unpool1d": lambda: empty,
        "max_unpool2d": lambda: empty,
        # Means of integers are rounded down.
        "local_response_norm": lambda: dtype == "int64" or (empty and dtype == "complex64"),
        "lp_pool1d": lambda: dtype == "int64",
        # Positions in half precision are a matter of rounding.
        "grid_sample": lambda: dtype in ("float16", "bfloat16"),
        "interpolate": lambda: options["size"] == 0,
        # A margin of integers is rounded down.
        "hinge_embedding_loss": lambda: dtype == "int64",
        # To one element it is a mean in torch, of any rank; of nothing there is no gradient.
        "adaptive_avg_pool1d": lambda: empty,
        "adaptive_avg_pool2d": lambda: empty or (options["output_size"] == 1 and len(first) > 4),
        # Two numbers become 1 and -1: the gradient is what rounding leaves.
        "group_norm": lambda: np.prod(first[1:]) // options["num_groups"] <= 2,
        # torch gives what its memory holds.
        "multi_margin_loss": lambda: empty,
        # torch takes [1] for a class, but where labels are smoothed.
        "cross_entropy": lambda: len(first) == len(others[0]),
    }
    if name in reasons:
        return reasons[name]()
    # torch does not look at options where the batch is empty, and shuffles no image without elements.
    return empty and name.startswith(("conv", "pixel_", "channel_"))


warnings.simplefilter("ignore")
count, differ = 0, []
for seed, (name, (arguments, choices)) in itertools.product(sys.argv[1:], FUNCTIONS.items()):
    rng = random.Random(f"{seed} {name}")
    kinds, shapes = arguments.split()[::2], arguments.split()[1::2]
    for number in range(60):
        sizes = [tuple(map(int, shape.split(","))) for shape in shapes]
        plain = number < 30  # of float32, and with shapes that need not fit
        if plain or rng.random() < 0.2:
            sizes = [nearly(rng, size) for size in sizes]
        dtype = "float32" if plain else rng.choice(DTYPES)
        orders = [("plain" if plain else rng.choice(ORDERS)) for _ in sizes]
        mode = "plain" if plain else rng.choice(MODES)
        arrays = [drawn(rng, kind, shape) for kind, shape in zip(kinds, sizes, strict=True)]
        options = {key: rng.choice(values) for key, values in choices.items()}
        graded = rng.random() < 0.5 and not kinds[0].isdigit()
        if name == "pdist" and 0 in sizes[0]:
            continue  # torch ends the process
        outcomes = []
        for library in (torch, tp):
            given = [
                laid_out(library, array, dtype, order)
                for array, order in zip(arrays, orders, strict=True)
            ]
            outcomes.append(called(library, name, given, options, graded, mode))
        theirs, ours = outcomes
        count += 1
        if not (
            same(theirs, ours, dtype)
            or more(theirs, dtype, orders)
            or known(name, arrays, options, dtype, orders)
        ):
            what = "torch refuses" if theirs is None else "refused" if ours is None else "differs"
            how = "" if plain else f"{dtype} {orders} {mode} "
            differ.append(
                f"{name} {sizes} {options} {how}{'with gradient ' if graded else ''}{what}"
            )
sys.stdout.write("\n" + json.dumps([count, differ]) + "\n")
