"""Random modules of both libraries: options of the constructor, inputs that fit, or nearly, and two calls.

Prints how many there were and what differs for none of the reasons that are known: what one of the two
refuses, the state's names and shapes, `extra_repr`, results while training and after, gradients of the input
and of the parameters, and the state after the calls. The arguments are the seeds.
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

FLAG = [True, False]
REDUCTION = {"reduction": ["mean", "sum", "none", "foo"]}
SPREAD = {
    "stride": [1, 2, 0],
    "padding": [0, 1, 2, -1],
    "dilation": [1, 2, 0],
    "groups": [1, 2, 3, 0],
    "bias": FLAG,
    "padding_mode": ["zeros", "zeros", "reflect", "replicate", "circular", "foo"],
}
SAME = {**SPREAD, "stride": [1, 1, 2], "padding": [0, "same", "valid", "foo", (1, 2), (1,)]}
TURNED = {
    "stride": [1, 2, 3],
    "padding": [0, 1],
    "output_padding": [0, 1, 2],
    "groups": [1, 2, 0],
    "bias": FLAG,
    "dilation": [1, 2],
}
NORM = {
    "eps": [1e-5, 0.1],
    "momentum": [0.1, 0.5, None, 0.0],
    "affine": FLAG,
    "track_running_stats": FLAG,
}
CELLS = {"bias": FLAG}
LAYERS = {
    "num_layers": [1, 2, 0],
    "bias": FLAG,
    "batch_first": FLAG,
    "bidirectional": FLAG,
    "dropout": [0.0, 0, -1.0, 2.0],
}
POOLED = {
    "_kernel_size": [2, 3, 0, 8],
    "stride": [None, 1, 2],
    "padding": [0, 1, -1],
    "ceil_mode": FLAG,
}
ATTENDING = {
    "_dropout": [0.0],
    "activation": ["relu", "gelu", "foo"],
    "batch_first": FLAG,
    "norm_first": FLAG,
    "bias": FLAG,
}
PADS = {"_padding": [1, 0, -1, (1, 2), (0, -1), (1, 1, 0, 2), (1, 0, 2, 1, 0, 1), (9, 9)]}
#: The constructor's options, by position where the name begins with an underscore; and what is called with.
MODULES = {
    "Linear": ({"_in": [3, 0], "_out": [4, 0], "bias": FLAG}, "normal 2,3"),
    "Bilinear": ({"_in1": [3], "_in2": [2], "_out": [4, 0], "bias": FLAG}, "normal 5,3 normal 5,2"),
    "Embedding": (
        {"_num": [5], "_dim": [3], "padding_idx": [None, 0, -1, 5], "max_norm": [None, 0.5],
        "scale_grad_by_freq": FLAG},
        "5 4,2",
    ),
    "EmbeddingBag": (
        {"_num": [5], "_dim": [3], "mode": ["sum", "mean", "max", "foo"], "padding_idx": [None, 0, -1],
        "scale_grad_by_freq": FLAG},
        "5 4,2",
    ),
    "Conv1d": ({"_in": [6], "_out": [6, 4], "_kernel": [1, 3, (2,), 0], **SPREAD}, "normal 2,6,9"),
    "Conv2d": ({"_in": [4], "_out": [4], "_kernel": [1, 3, (2, 3)], **SAME}, "normal 2,4,7,8"),
    "Conv3d": ({"_in": [2], "_out": [4], "_kernel": [1, 2, (2, 1, 3)], **SPREAD}, "normal 2,2,4,5,4"),
    "ConvTranspose1d": ({"_in": [4], "_out": [4], "_kernel": [1, 3], **TURNED}, "normal 2,4,7"),
    "ConvTranspose2d": ({"_in": [4], "_out": [2], "_kernel": [2, (3, 1)], **TURNED}, "normal 2,4,4,5"),
    "ConvTranspose3d": ({"_in": [2], "_out": [2], "_kernel": [2], **TURNED}, "normal 1,2,3,4,3"),
    "BatchNorm1d": ({"_features": [3, 0], **NORM}, "normal 4,3,5"),
    "BatchNorm2d": ({"_features": [3], **NORM}, "normal 4,3,2,5"),
    "BatchNorm3d": ({"_features": [3], **NORM}, "normal 2,3,2,2,2"),
    "InstanceNorm1d": ({"_features": [3], **NORM}, "normal 4,3,5"),
    "InstanceNorm2d": ({"_features": [3], **NORM}, "normal 4,3,2,5"),
    "InstanceNorm3d": ({"_features": [3], **NORM}, "normal 4,3,2,2,3"),
    "GroupNorm": (
        {"_groups": [1, 2, 3, 4, 0], "_channels": [6], "eps": [1e-5, 0.1], "affine": FLAG},
        "normal 2,6,5",
    ),
    "LayerNorm": (
        {"_shape": [3, (3,), (2, 3), (4, 2, 3), ()], "eps": [1e-5, 0.1], "elementwise_affine": FLAG,
        "bias": FLAG},
        "normal 4,2,3",
    ),
    "RMSNorm": ({"_shape": [3, (2, 3), ()], "eps": [None, 0.1], "elementwise_affine": FLAG}, "normal 4,2,3"),
    "LocalResponseNorm": (
        {"_size": [1, 2, 3, 7], "alpha": [1e-4, 0.5], "beta": [0.75, 2.0], "k": [1.0, 0.5]},
        "normal 2,5,3",
    ),
    "RNN": (
        {"_in": [3], "_hidden": [4, 0], "nonlinearity": ["tanh", "relu", "foo"], **LAYERS},
        "normal 5,2,3",
    ),
    "LSTM": ({"_in": [3], "_hidden": [4], "proj_size": [0, 0, 2, 5], **LAYERS}, "normal 5,2,3"),
    "GRU": ({"_in": [3], "_hidden": [4], **LAYERS}, "normal 5,2,3"),
    "RNNCell": (
        {"_in": [3], "_hidden": [4], "nonlinearity": ["tanh", "relu", "foo"], **CELLS},
        "normal 2,3 normal 2,4",
    ),
    "LSTMCell": ({"_in": [3], "_hidden": [4], **CELLS}, "normal 2,3"),
    "GRUCell": ({"_in": [3], "_hidden": [4], **CELLS}, "normal 2,3 normal 2,4"),
    "MultiheadAttention": (
        {"_dim": [4, 6], "_heads": [1, 2, 3], "bias": FLAG, "add_bias_kv": FLAG, "add_zero_attn": FLAG,
         "kdim": [None, 4], "vdim": [None, 4], "batch_first": FLAG},
        "normal 3,2,4 normal 5,2,4 normal 5,2,4",
    ),
    "TransformerEncoderLayer": (
        {"_d": [4], "_heads": [1, 2, 3], "_feedforward": [5], **ATTENDING},
        "normal 3,2,4",
    ),
    "TransformerDecoderLayer": (
        {"_d": [4], "_heads": [1, 2], "_feedforward": [5], **ATTENDING},
        "normal 3,2,4 normal 5,2,4",
    ),
    "Transformer": (
        {"_d": [4], "_heads": [2], "_encoder_layers": [1, 2], "_decoder_layers": [1, 2],
        "_feedforward": [5], **ATTENDING},
        "normal 3,2,4 normal 5,2,4",
    ),
    "MaxPool1d": ({**POOLED, "dilation": [1, 2, 0], "return_indices": FLAG}, "normal 2,3,7"),
    "MaxPool2d": ({**POOLED, "dilation": [1, 2], "return_indices": FLAG}, "normal 2,3,7,6"),
    "MaxPool3d": ({**POOLED, "return_indices": FLAG}, "normal 2,3,4,5,4"),
    "AvgPool1d": ({**POOLED, "count_include_pad": FLAG}, "normal 2,3,7"),
    "AvgPool2d": ({**POOLED, "count_include_pad": FLAG, "divisor_override": [None, 3, 0]}, "normal 2,3,7,6"),
    "AvgPool3d": (
        {**POOLED, "count_include_pad": FLAG, "divisor_override": [None, 3, 0]},
        "normal 2,3,4,5,4",
    ),
    "LPPool1d": (
        {"_norm": [1, 2, 3.0], "_kernel": [2, 3], "stride": [None, 1], "ceil_mode": FLAG},
        "normal 2,3,7",
    ),
    "LPPool2d": (
        {"_norm": [1, 2], "_kernel": [2, (2, 3)], "stride": [None, 1], "ceil_mode": FLAG},
        "normal 2,3,7,6",
    ),
    "LPPool3d": (
        {"_norm": [1, 2], "_kernel": [2], "stride": [None, 1], "ceil_mode": FLAG},
        "normal 2,3,4,5,4",
    ),
    "AdaptiveAvgPool1d": ({"_size": [1, 3, 9, (2,)]}, "normal 2,3,7"),
    "AdaptiveAvgPool2d": ({"_size": [2, (3, None), (1, 2), (2,)]}, "normal 2,3,7,6"),
    "AdaptiveAvgPool3d": ({"_size": [2, (3, None, 1), (1, 2)]}, "normal 2,3,4,5,4"),
    "AdaptiveMaxPool1d": ({"_size": [1, 3, 9], "return_indices": FLAG}, "normal 2,3,7"),
    "AdaptiveMaxPool2d": ({"_size": [2, (3, None), (1, 2), (2,)], "return_indices": FLAG}, "normal 2,3,7,6"),
    "AdaptiveMaxPool3d": ({"_size": [2, (3, None, 1), (1, 2)], "return_indices": FLAG}, "normal 2,3,4,5,4"),
    "MaxUnpool1d": ({"_kernel": [2, 3], "stride": [None, 1, 2], "padding": [0, 1]}, "normal 2,3,3 6 2,3,3"),
    "MaxUnpool2d": ({"_kernel": [2, 3], "stride": [None, 2], "padding": [0, 1]}, "normal 2,2,3,3 36 2,2,3,3"),
    "Unfold": (
        {"_kernel": [2, (2, 3), 9], "dilation": [1, 2], "padding": [0, 1], "stride": [1, 2]},
        "normal 2,3,5,6",
    ),
    "Fold": ({"_output": [5, (5, 5), 4], "_kernel": [2, (2, 2), 3], "stride": [1, 2]}, "normal 2,12,16"),
    "PixelShuffle": ({"_factor": [1, 2, 3, 0]}, "normal 1,8,2,2"),
    "PixelUnshuffle": ({"_factor": [1, 2, 3, 0]}, "normal 1,2,4,4"),
    "ChannelShuffle": ({"_groups": [1, 2, 3]}, "normal 1,8,2,2"),
    "Upsample": (
        {"_size": [None, 3, (3, 5), (3,)], "scale_factor": [None, 2, 0.5, (2.0, 1.5)],
         "mode": ["nearest", "bilinear", "bicubic", "linear", "foo"], "align_corners": [None, True, False],
         "recompute_scale_factor": [None, True]},
        "normal 1,2,4,4",
    ),
    "UpsamplingBilinear2d": ({"_size": [None, 3, (2, 6)], "scale_factor": [None, 2]}, "normal 1,2,4,4"),
    "UpsamplingNearest2d": ({"_size": [None, 3, (2, 6)], "scale_factor": [None, 2]}, "normal 1,2,4,4"),
    **{
        f"{kind}Pad{rank}d": (PADS if kind != "Constant" else {**PADS, "_value": [0, 1.5, -2]},
        f"normal 2,3,{sizes}")
        for kind in ("Constant", "Reflection", "Replication", "Circular")
        for rank, sizes in ((1, "4"), (2, "4,5"), (3, "4,5,3"))
    },
    **{f"ZeroPad{rank}d": (PADS, f"normal 2,3,{sizes}") for rank, sizes in ((1, "4"), (2, "4,5"), (3,
    "4,5,3"))},
    "Flatten": ({"start_dim": [1, 0, -1, 5], "end_dim": [-1, 0, 1, 2]}, "normal 2,3,4"),
    "Unflatten": ({"_dim": [1, 0, -1, 5], "_size": [(2, 3), (-1, 3), (2, 2), 3, (-1, -1)]}, "normal 6,6"),
    "CosineSimilarity": ({"_dim": [1, 0, -1, 2], "eps": [1e-8, 0.5]}, "normal 4,3 normal 4,3"),
    "PairwiseDistance": (
        {"p": [2.0, 1.0, 0.5, 3], "eps": [1e-6, 0.1], "keepdim": FLAG},
        "normal 4,3 normal 4,3",
    ),
    "AdaptiveLogSoftmaxWithLoss": (
        {"_in": [4], "_classes": [9], "_cutoffs": [[3], [3, 6], [9], [6, 3], [0, 2]], "div_value": [4.0, 2.0],
        "head_bias": FLAG},
        "normal 5,4 9 5",
    ),
    **{
        name: (options, "normal 3,4,2")
        for name, options in {
            "ELU": {"alpha": [1.0, 0.5, -1.0], "inplace": FLAG},
            "CELU": {"alpha": [1.0, 0.5, 0.0], "inplace": FLAG},
            "SELU": {"inplace": FLAG},
            "GELU": {"approximate": ["none", "tanh", "foo"]},
            "GLU": {"_dim": [-1, 0, 1, 3]},
            "Hardshrink": {"lambd": [0.5, 0.0, -1.0]},
            "Hardsigmoid": {"inplace": FLAG},
            "Hardswish": {"inplace": FLAG},
            "Hardtanh": {"min_val": [-1.0, 0.5, 2.0], "max_val": [1.0], "inplace": FLAG},
            "LeakyReLU": {"negative_slope": [0.01, 0.0, -0.5], "inplace": FLAG},
            "LogSigmoid": {},
            "LogSoftmax": {"_dim": [None, 0, -1, 3]},
            "Mish": {"inplace": FLAG},
            "PReLU": {"num_parameters": [1, 4, 3], "init": [0.25, -1.0]},
            "ReLU": {"inplace": FLAG},
            "ReLU6": {"inplace": FLAG},
            "RReLU": {"_lower": [0.2], "_upper": [0.2, 0.1]},
            "SiLU": {"inplace": FLAG},
            "Sigmoid": {},
            "Softmax": {"_dim": [None, 0, -1, 3]},
            "Softmin": {"_dim": [None, 0, -1, 3]},
            "Softmax2d": {},
            "Softplus": {"beta": [1.0, 2.0], "threshold": [20.0, 0.5]},
            "Softshrink": {"lambd": [0.5, 0.0, -1.0]},
            "Softsign": {},
            "Tanh": {},
            "Tanhshrink": {},
            "Threshold": {"_threshold": [0.1, -1], "_value": [2.0, 5], "inplace": FLAG},
            "Dropout": {"_p": [0.0, 1.0, -1.0, 2.0], "inplace": FLAG},
            "AlphaDropout": {"_p": [0.0, 2.0], "inplace": FLAG},
            "FeatureAlphaDropout": {"_p": [0.0], "inplace": FLAG},
            "Identity": {"anything": [1, "a"]},
        }.items()
    },
    "L1Loss": (REDUCTION, "normal 4,3 normal 4,3"),
    "MSELoss": (REDUCTION, "normal 4,3 normal 4,3"),
    "SmoothL1Loss": ({**REDUCTION, "beta": [1.0, 0.0, -1.0]}, "normal 4,3 normal 4,3"),
    "HuberLoss": ({**REDUCTION, "delta": [1.0, 0.5, 0.0]}, "normal 4,3 normal 4,3"),
    "CrossEntropyLoss": (
        {**REDUCTION, "ignore_index": [-100, 1], "label_smoothing": [0.0, 0.1, 2.0]}, "normal 4,3,2 3 4,2",
    ),
    "NLLLoss": ({**REDUCTION, "ignore_index": [-100, 1]}, "normal 4,3 3 4"),
    "PoissonNLLLoss": ({**REDUCTION, "log_input": FLAG, "full": FLAG}, "normal 4,3 chance 4,3"),
    "GaussianNLLLoss": ({**REDUCTION, "full": FLAG, "eps": [1e-6, 0.0]}, "normal 4,3 normal 4,3 chance 4,3"),
    "KLDivLoss": (
        {"reduction": ["mean", "batchmean", "sum", "none"], "log_target": FLAG},
        "normal 4,3 chance 4,3",
    ),
    "BCELoss": (REDUCTION, "chance 4,3 chance 4,3"),
    "BCEWithLogitsLoss": (REDUCTION, "normal 4,3 chance 4,3"),
    "MarginRankingLoss": ({**REDUCTION, "margin": [0.0, 0.5]}, "normal 4 normal 4 sign 4"),
    "HingeEmbeddingLoss": ({**REDUCTION, "margin": [1.0, 0.5]}, "normal 4,3 sign 4,3"),
    "MultiLabelMarginLoss": (REDUCTION, "normal 4,3 3 4,3"),
    "MultiLabelSoftMarginLoss": (REDUCTION, "normal 4,3 chance 4,3"),
    "SoftMarginLoss": (REDUCTION, "normal 4,3 sign 4,3"),
    "CosineEmbeddingLoss": ({**REDUCTION, "margin": [0.0, 0.5, 2.0]}, "normal 4,3 normal 4,3 sign 4"),
    "MultiMarginLoss": ({**REDUCTION, "p": [1, 2, 3], "margin": [1.0, 0.5]}, "normal 4,3 3 4"),
    "TripletMarginLoss": (
        {**REDUCTION, "margin": [1.0, 0.0], "p": [2.0, 1.0], "swap": FLAG},
        "normal 4,3 normal 4,3 normal 4,3",
    ),
    "TripletMarginWithDistanceLoss": (
        {**REDUCTION, "margin": [1.0, 0.5, 0.0], "swap": FLAG}, "normal 4,3 normal 4,3 normal 4,3",
    ),
    "CTCLoss": (
        {"_blank": [0, 1], "_reduction": ["mean", "sum", "none"], "_zero_infinity": [True]},
        "normal 6,2,4 4 2,3 7 2 4 2",
    ),
}  # fmt: skip


def chosen(rng, options):
    """Return arguments of a constructor: of each option the first value, another, or the default."""
    given, named = [], {}
    for name, values in options.items():
        value = values[0] if rng.random() < 0.6 else rng.choice(values)
        if name[0] == "_":
            given.append(value)
        elif rng.random() < 0.5:
            named[name] = value
    return given, named


def changed(rng, options):
    """Return an option, or none, that is set after the module was made, and what to: a flag or a number."""
    plain = {
        name.removeprefix("_"): [v for v in values if isinstance(v, (bool, float))]
        for name, values in options.items()
    }
    # What parameters there are is settled when a module is made.
    settable = [name for name in plain if plain[name] and name not in ("bias", "bidirectional")]
    if not settable or rng.random() < 0.7:
        return {}
    name = rng.choice(settable)
    return {name: rng.choice(plain[name])}


def flat(result):
    if isinstance(result, (tuple, list)):
        return [part for item in result for part in flat(item)]
    return [result] if result is not None else []


def state(module):
    return {name: numbers(value) for name, value in module.state_dict().items()}


def behaviour(library, name, given, named, later, arrays, start, graded, how):
    """Return what a module does, step by step up to the first that is refused, and its first state."""
    dtype, orders, mode = how
    steps = {}
    try:
        module = getattr(library.nn, name)(*given, **named)
        steps["extra_repr"] = module.extra_repr()
        steps["names"] = [(key, value.shape) for key, (_, value) in state(module).items()]
        if start is None:
            start = {key: value for key, (_, value) in state(module).items()}
        module.load_state_dict({key: library.tensor(value) for key, value in start.items()})
        if dtype != "int64":
            module.to(getattr(library, dtype))
        for option, value in later.items():
            if hasattr(module, option):
                setattr(module, option, value)
        steps["extra_repr later"] = module.extra_repr()
        for training in ("train", "eval"):
            getattr(module, training)()
            tensors = [
                laid_out(library, array, dtype, order)
                for array, order in zip(arrays, orders, strict=True)
            ]
            if graded:
                tensors[0] = tensors[0].detach().requires_grad_()
            first, *others = tensors
            with mode_of(library, mode):
                if graded or name == "CTCLoss":  # modules may write to their input
                    first = first.log_softmax(-1) if name == "CTCLoss" else first + 0
                results = flat(module(first, *others))
            steps[f"results {training}"] = [numbers(result) for result in results]
            if graded and any(result.requires_grad for result in results):
                loss = sum(weighted(r) for r in results if r.requires_grad)
                (loss.real if loss.is_complex() else loss).backward()
                leaves = [tensors[0], *module.parameters()]
                steps[f"gradients {training}"] = [
                    None if x.grad is None else numbers(x.grad) for x in leaves
                ]
            steps[f"state {training}"] = state(module)
    except Exception as error:
        steps["refused"] = type(error).__name__
    return steps, start


def same(theirs, ours, dtype):
    if isinstance(theirs, tuple) and len(theirs) == 2 and isinstance(theirs[1], np.ndarray):
        return (
            isinstance(ours, tuple)
            and theirs[0] == ours[0]
            and theirs[1].shape == ours[1].shape
            and np.allclose(theirs[1], ours[1], *TOLERANCES[dtype], equal_nan=True)
        )
    if isinstance(theirs, dict):
        return theirs.keys() == ours.keys() and all(
            same(theirs[key], ours[key], dtype) for key in theirs
        )
    if isinstance(theirs, list):
        return len(theirs) == len(ours) and all(
            same(a, b, dtype) for a, b in zip(theirs, ours, strict=True)
        )
    return theirs == ours


def more(dtype, orders):
    """Return whether torch may have no kernel for a dtype, or ask for another order of memory."""
    return dtype not in ("float32", "float64") or set(orders) != {"plain"}


def known(name, given, named, arrays, dtype, orders):
    """Return whether modules differ for a reason that is known, see docs/deviations.md."""
    first, *others = arrays
    if name == "CTCLoss":  # blanks among the labels, and labels that there are not: undefined
        return (others[0] == given[0]).any() or others[0].max(initial=0) >= first.shape[-1]
    if "expanded" in orders and named.get("inplace", False):  # shared elements are not written to
        return True
    if name == "HingeEmbeddingLoss" and dtype == "int64":  # whose margin is rounded down
        return True
    if name == "LocalResponseNorm" and dtype == "int64":  # whose means are rounded down
        return True
    if name == "SiLU" and dtype == "complex64":  # has no derivative, or another one in place
        return True
    if name == "Transformer" and dtype in ("float16", "bfloat16"):  # errors of many layers
        return True
    if name in ("ELU", "CELU", "LeakyReLU"):
        return named.get("inplace", False)
    if name.startswith(("Reflection", "Replication")):  # what leaves nothing is refused
        padding = given[0] if isinstance(given[0], tuple) else (given[0],) * 6
        sizes = first.shape[: -len(padding) // 2 - 1 : -1]
        if any(n + sum(padding[2 * i : 2 * i + 2]) <= 0 for i, n in enumerate(sizes)):
            return True
    if name in ("AvgPool3d", "LPPool3d"):
        return min(first.shape[-3:]) < max(np.ravel(given[0 if name[0] == "A" else 1]))
    # torch does not look at shapes where nothing comes out, has NaN for what is summed over nothing, and no
    # gradients of convolutions that see padding alone.
    return 0 in first.shape and name.startswith(
        (
            "AdaptiveAvg",
            "Pixel",
            "Channel",
            "BatchNorm",
            "Conv",
            "GroupNorm",
            "InstanceNorm",
            "EmbeddingBag",
        )
    )


warnings.simplefilter("ignore")
count, differ = 0, []
for seed, (name, (options, inputs)) in itertools.product(sys.argv[1:], MODULES.items()):
    rng = random.Random(f"{seed} {name}")
    kinds, shapes = inputs.split()[::2], inputs.split()[1::2]
    for number in range(40):
        given, named = chosen(rng, options)
        sizes = [tuple(map(int, shape.split(","))) for shape in shapes]
        plain = number < 20  # of float32
        if rng.random() < (0.3 if plain else 0.1):
            sizes = [nearly(rng, shape) for shape in sizes]
        arrays = [drawn(rng, kind, shape) for kind, shape in zip(kinds, sizes, strict=True)]
        graded = rng.random() < 0.6 and not kinds[0].isdigit()
        dtype = "float32" if plain else rng.choice(DTYPES)
        orders = [("plain" if plain else rng.choice(ORDERS)) for _ in sizes]
        mode = "plain" if plain else rng.choice(MODES)
        how = dtype, orders, mode
        later = changed(rng, options)
        theirs, start = behaviour(torch, name, given, named, later, arrays, None, graded, how)
        ours, _ = behaviour(tp, name, given, named, later, arrays, start, graded, how)
        count += 1
        for step in {**theirs, **ours}:
            if "refused" in theirs and more(dtype, orders):
                break
            if step == "refused":
                equal = (step in theirs) is (step in ours)
            else:
                equal = step in theirs and step in ours and same(theirs[step], ours[step], dtype)
            if not equal and not known(name, given, {**named, **later}, arrays, dtype, orders):
                what = (
                    f"{theirs.get(step)} {ours.get(step)}"
                    if step in ("refused", "extra_repr", "extra_repr later", "names")
                    else ""
                )
                said = "" if plain else f"{dtype} {orders} {mode} "
                differ.append(
                    f"{name} {given} {named} {later} {sizes} {said}{'graded ' if graded else ''}{step} {what}"
                )
                break
sys.stdout.write("\n" + json.dumps([count, differ]) + "\n")
