"""Every function of nn.functional: outputs and all gradients are torch's, in float64.

One call each; the files beside this one go through the options.
"""

import pytest

import tensorplug.nn.functional as F

from .test_every_module import classes, matrix, real, signs, unit

torch = pytest.importorskip("torch", reason="values are compared with torch's")

LINE, PLANE, SPACE = (2, 4, 8), (2, 4, 8, 6), (2, 4, 6, 4, 6)
SHAPES = {"1d": LINE, "2d": PLANE, "3d": SPACE}


def spatial(name, *options, **named):
    """Return the calls of a function that exists for one to three dimensions."""
    return {
        name.replace("*", ending): lambda shape=shape: ((real(*shape), *options), named)
        for ending, shape in SHAPES.items()
        if hasattr(F, name.replace("*", ending))
    }


def weighted(name, *shape):
    return {
        name.replace("*", ending): lambda sizes=sizes, ending=ending: (
            (real(*sizes), real(*shape, *(3,) * int(ending[0]))),
            {},
        )
        for ending, sizes in SHAPES.items()
    }


def call(*args, **kwargs):
    return lambda: (tuple(arg() if callable(arg) else arg for arg in args), kwargs)


PLAIN = (
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "normalize",
    "pdist",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
)

CALLS = {
    **{
        name: call(matrix)
        for name in PLAIN
    },
    # In place: on what an op made, as a leaf refuses.
    **{
        name: call(matrix)
        for name in ("celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "selu_")
    },
    **{name: call(matrix, dim=1) for name in ("log_softmax", "softmax", "softmin")},
    "threshold": call(matrix, 0.1, -2.0),
    "threshold_": call(matrix, 0.1, -2.0),
    "prelu": call(matrix, lambda: real(4)),
    # Random: without training, or such that nothing is left to chance.
    **{
        name: call(matrix, training=False)
        for name in ("alpha_dropout", "dropout", "feature_alpha_dropout", "rrelu", "rrelu_")
    },
    **spatial("dropout*", training=False),
    **spatial("adaptive_avg_pool*", 2),
    **spatial("adaptive_max_pool*", 2),
    **spatial("adaptive_max_pool*_with_indices", 2),
    **spatial("avg_pool*", 2),
    **spatial("max_pool*", 2),
    **spatial("max_pool*_with_indices", 2),
    **spatial("lp_pool*", 2, 2),
    **{
        f"fractional_max_pool{n}d{ending}": lambda n=n: (
            (real(*SHAPES[f"{n}d"]), 2, 2),
            {"_random_samples": torch.rand(2, 4, n).double()},
        )
        for n in (2, 3)
        for ending in ("", "_with_indices")
    },
    "max_unpool1d": call(lambda: real(1, 1, 2), torch.tensor([[[1, 2]]]), 2),
    "max_unpool2d": call(lambda: real(1, 1, 1, 2), torch.tensor([[[[1, 6]]]]), 2),
    "max_unpool3d": call(lambda: real(1, 1, 1, 1, 2), torch.tensor([[[[[1, 6]]]]]), 2),
    **weighted("conv*", 5, 4),
    **weighted("conv_transpose*", 4, 5),
    "conv_tbc": call(lambda: real(6, 2, 4), lambda: real(3, 4, 5), lambda: real(5), 1),
    "linear": call(matrix, lambda: real(5, 4), lambda: real(5)),
    "bilinear": call(matrix, lambda: real(3, 5), lambda: real(2, 4, 5), lambda: real(2)),
    "embedding": call(lambda: classes(2, 5), lambda: real(4, 3)),
    "embedding_bag": call(lambda: classes(2, 5), lambda: real(4, 3), mode="sum"),
    "one_hot": call(lambda: classes(2, 5), 4),
    "fold": call(lambda: real(2, 8, 4), (4, 4), 2, stride=2),
    "unfold": call(lambda: real(*PLANE), 2),
    "pad": call(lambda: real(*PLANE), (1, 2, 0, 1), mode="reflect"),
    "channel_shuffle": call(lambda: real(*PLANE), 2),
    "native_channel_shuffle": call(lambda: real(*PLANE).detach(), 2),  # torch has no derivative
    "pixel_shuffle": call(lambda: real(*PLANE), 2),
    "pixel_unshuffle": call(lambda: real(*PLANE), 2),
    "interpolate": call(lambda: real(*PLANE), scale_factor=2, mode="bicubic"),
    "upsample": call(lambda: real(*PLANE), scale_factor=2),
    "upsample_bilinear": call(lambda: real(*PLANE), scale_factor=2),
    "upsample_nearest": call(lambda: real(*PLANE), scale_factor=2),
    "affine_grid": call(lambda: real(2, 2, 3), (2, 4, 5, 6), align_corners=False),
    "grid_sample": call(lambda: real(*PLANE), lambda: real(2, 3, 3, 2), align_corners=False),
    "batch_norm": call(
        lambda: real(*PLANE), None, None, lambda: real(4), lambda: real(4), training=True
    ),
    "instance_norm": call(lambda: real(*PLANE)),
    "group_norm": call(lambda: real(*PLANE), 2, lambda: real(4), lambda: real(4)),
    "layer_norm": call(matrix, (4,), lambda: real(4), lambda: real(4)),
    "rms_norm": call(matrix, (4,), lambda: real(4)),
    "local_response_norm": call(lambda: real(*PLANE), 3),
    "scaled_dot_product_attention": call(*[lambda: real(2, 3, 5, 4)] * 3, is_causal=True),
    "cosine_similarity": call(matrix, matrix),
    "pairwise_distance": call(matrix, matrix),
    **{name: call(matrix, matrix) for name in ("huber_loss", "l1_loss", "mse_loss", "smooth_l1_loss")},
    "binary_cross_entropy": call(lambda: unit(3, 4), lambda: unit(3, 4)),
    "binary_cross_entropy_with_logits": call(matrix, lambda: unit(3, 4)),
    "kl_div": call(matrix, lambda: unit(3, 4), reduction="sum"),
    "poisson_nll_loss": call(matrix, lambda: unit(3, 4)),
    "gaussian_nll_loss": call(matrix, matrix, lambda: unit(3, 4)),
    "cross_entropy": call(matrix, lambda: classes(3)),
    "nll_loss": call(matrix, lambda: classes(3)),
    "linear_cross_entropy": call(matrix, lambda: real(5, 4), lambda: classes(3)),
    "multi_margin_loss": call(matrix, lambda: classes(3)),
    "multilabel_margin_loss": call(matrix, torch.tensor([[0, 1, -1, 0]] * 3)),
    "multilabel_soft_margin_loss": call(matrix, lambda: unit(3, 4).detach().round()),
    "soft_margin_loss": call(matrix, lambda: signs(3, 4)),
    "hinge_embedding_loss": call(matrix, lambda: signs(3, 4)),
    "margin_ranking_loss": call(lambda: real(3), lambda: real(3), lambda: signs(3)),
    "cosine_embedding_loss": call(matrix, matrix, lambda: signs(3)),
    "triplet_margin_loss": call(matrix, matrix, matrix),
    "triplet_margin_with_distance_loss": call(matrix, matrix, matrix),
    "multi_head_attention_forward": call(
        *[lambda: real(5, 2, 4)] * 3, 4, 2, lambda: real(12, 4), lambda: real(12), None, None, False,
        0.0, lambda: real(4, 4), lambda: real(4),
    ),
}  # fmt: skip

ELSEWHERE = {
    "constant_pad_nd": "in torch at the top level alone: test_top_level_functions.py",
    "ctc_loss": "torch's gradient takes log_softmax along: test_functional_loss.py",
    "grouped_mm": "of bfloat16 only in torch: test_grouped_mm.py",
    "gumbel_softmax": "random: test_functional_activation.py",
}
# torch keeps a sixth in single precision.
TOLERANCES = {"hardsigmoid": {"rtol": 1e-7}}


@pytest.mark.parametrize("name", CALLS)
def test_functional(compare, name):
    args, kwargs = CALLS[name]()
    ours, theirs = getattr(F, name), getattr(torch.nn.functional, name)
    if name.endswith("_"):
        compare(
            lambda x, *rest, **named: ours(x * 1, *rest, **named),
            lambda x, *rest, **named: theirs(x * 1, *rest, **named),
            *args,
            **kwargs,
        )
    else:
        compare(ours, theirs, *args, **kwargs, **TOLERANCES.get(name, {}))


def test_every_function_is_compared():
    functions = [name for name in dir(F) if not name.startswith("_") and callable(getattr(F, name))]
    found = [*CALLS, *ELSEWHERE]
    assert [name for name in functions if name not in found] == []
    assert [name for name in found if name not in functions] == []
