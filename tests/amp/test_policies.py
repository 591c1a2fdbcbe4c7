"""What autocast makes of each op on "cpu" is what torch makes of it: the dtypes of the results."""

import warnings

import pytest

import tensorplug as tp
import tensorplug.nn.functional as F
from tensorplug.amp.policies import ACCELERATORS, CPU, policies
from tensorplug.core.dispatch import op_registry

torch = pytest.importorskip("torch", reason="dtypes are compared with torch's")

N = 4


def tensors(library, dtype):
    """Return inputs by the letter that the table below uses."""

    def ramp(*shape):
        count = 1
        for size in shape:
            count *= size
        values = library.arange(count, dtype=library.float32) * 7 % 5 / 4 + 0.25
        return (values / 2).reshape(shape).to(dtype)

    return {
        "v": ramp(N),
        "m": ramp(N, N) + library.eye(N).to(dtype) * 3,
        "b": ramp(2, N, N),
        "s": ramp(1, 2, N, N, N),  # three spatial dimensions
        "p": ramp(1, 2, N, N),
        "q": ramp(1, 2, N),
        "k1": ramp(2, 2, 2),
        "k2": ramp(2, 2, 2, 2),
        "k3": ramp(2, 2, 2, 2, 2),
        "one": ramp(1),
        "half": ramp(N, N) / 4 + 0.1,
        "c": library.tensor([0, 1, 2, 3]),
        "sign": library.tensor([1, -1, 1, -1]),
        "signs": library.ones(N, N),
        "pairs": library.tensor([[0, 1, -1, 0]] * N),
        "grid": ramp(1, N, N, 2),
    }


def both(path):
    """Return the function of a dotted name, ours and torch's."""
    found = []
    for library, functional in ((tp, F), (torch, torch.nn.functional)):
        place = functional if path.startswith("F.") else library
        for name in path.removeprefix("F.").split("."):
            place = getattr(place, name)
        found.append(place)
    return found


# The function, its tensors by letter, further arguments.
CALLS = [
    ("mm", "m m"), ("matmul", "m m"), ("matmul", "b m"), ("bmm", "b b"), ("addmm", "m m m"),
    ("baddbmm", "b b b"), ("addbmm", "m b b"), ("mv", "m v"), ("dot", "v v"), ("outer", "v v"),
    ("F.linear", "m m"), ("F.linear", "m m v"), ("F.bilinear", "m m k"), ("linalg.multi_dot", "[m,m]"),
    ("F.conv1d", "q k1"), ("F.conv2d", "p k2"), ("F.conv3d", "s k3"), ("F.conv_transpose1d", "q k1"),
    ("F.conv_transpose2d", "p k2"), ("F.conv_transpose3d", "s k3"), ("F.prelu", "m one"),
    ("F.scaled_dot_product_attention", "b b b"), ("tensordot", "m m", 1),
    ("F.mse_loss", "m half"), ("F.l1_loss", "m half"), ("F.smooth_l1_loss", "m half"),
    ("F.huber_loss", "m half"), ("F.nll_loss", "m c"), ("F.cross_entropy", "m c"),
    ("F.kl_div", "m half"), ("F.poisson_nll_loss", "m half"), ("F.binary_cross_entropy", "half half"),
    ("F.binary_cross_entropy_with_logits", "m half"), ("F.soft_margin_loss", "m signs"),
    ("F.hinge_embedding_loss", "v sign"), ("F.margin_ranking_loss", "v v sign"),
    ("F.cosine_embedding_loss", "m half sign"), ("F.triplet_margin_loss", "m half m"),
    ("F.multi_margin_loss", "m c"), ("F.multilabel_margin_loss", "m pairs"),
    ("F.multilabel_soft_margin_loss", "m half"), ("F.gaussian_nll_loss", "m half m"),
    ("F.softmax", "m", 1), ("F.log_softmax", "m", 1), ("softmax", "m", 1), ("log", "half"),
    ("exp", "m"), ("sum", "m"), ("mean", "m"), ("cumsum", "m", 0), ("cumprod", "m", 0), ("norm", "m"),
    ("pow", "m", 2), ("sqrt", "half"), ("rsqrt", "half"), ("sin", "m"), ("add", "m half"),
    ("mul", "m half"), ("div", "m half"), ("sub", "m half"), ("var", "m"), ("std", "m"),
    ("logsumexp", "m", 0), ("prod", "half"), ("prod", "half", 0), ("trace", "m"), ("cdist", "m half"),
    ("quantile", "m", 0.5), ("nanquantile", "m", 0.5), ("polar", "v v"), ("inverse", "m"),
    ("cat", "[m,half]"), ("stack", "[m,half]"), ("addcdiv", "m half half"), ("addcmul", "m half half"),
    ("atan2", "m half"), ("dist", "m half"), ("renorm", "m", 2, 0, 1.0), ("where", "m half"),
    ("linalg.inv", "m"), ("linalg.solve", "m v"), ("linalg.eigvals", "m"),
    ("linalg.svdvals", "m"), ("linalg.qr", "m"), ("linalg.cond", "m"),
    ("linalg.vector_norm", "m"), ("linalg.matrix_norm", "m"),
    ("fft.fft", "v"), ("fft.rfft", "v"), ("fft.fft2", "m"), ("fft.fftn", "m"), ("pinverse", "m"),
    ("F.avg_pool1d", "q", 2), ("F.avg_pool2d", "p", 2), ("F.avg_pool3d", "s", 2),
    ("F.max_pool1d", "q", 2), ("F.max_pool2d", "p", 2), ("F.max_pool3d", "s", 2),
    ("F.adaptive_avg_pool1d", "q", 2), ("F.adaptive_avg_pool2d", "p", 2),
    ("F.adaptive_avg_pool3d", "s", 2), ("F.adaptive_max_pool2d", "p", 2),
    ("F.adaptive_max_pool3d", "s", 2), ("F.grid_sample", "p grid"), ("F.interpolate", "p", 8),
    ("F.layer_norm", "m", (N,)), ("F.group_norm", "p", 1), ("F.batch_norm", "p two two"),
    ("F.rms_norm", "m", (N,)), ("F.relu", "m"), ("F.gelu", "m"), ("F.silu", "m"), ("F.elu", "m"),
    ("F.softplus", "m"), ("F.logsigmoid", "m"), ("F.leaky_relu", "m"), ("F.hardswish", "m"),
    ("F.cosine_similarity", "m half"), ("F.pairwise_distance", "m half"), ("F.normalize", "m"),
    ("F.embedding", "c m"), ("F.one_hot", "c"), ("einsum", "=ij,jk->ik m m"), ("kron", "m half"),
    ("chain_matmul", "m m m"), ("addmv", "v m v"), ("addr", "m v v"), ("vdot", "v v"),
    ("linalg.vecdot", "m half"), ("linalg.matmul", "m m"), ("cross", "m3 m3"),
]  # fmt: skip


def arguments(library, dtype, letters, mixed):
    known = tensors(library, dtype)
    other = tensors(library, library.bfloat16) if mixed else known
    known["two"] = known["q"].reshape(-1)[:2]
    known["m3"] = known["m"][:, :3]
    known["k"] = known["b"].reshape(-1)[: N * N].reshape(1, N, N)
    known["k"] = library.cat([known["k"], known["k"]])
    made = []
    for number, letter in enumerate(letters.split()):
        chosen = other if number and letter in other else known
        if letter.startswith("="):
            made.append(letter[1:])
        elif letter.startswith("["):
            first, second = letter[1:-1].split(",")
            made.append([known[first], other[second]])
        else:
            made.append(chosen[letter])
    return made


def outcome(library, function, call, dtype, mixed, low):
    """Return the dtypes of the results, or "error"."""
    _, letters, *more = call
    try:
        args = arguments(library, getattr(library, dtype), letters, mixed)
        if call[0] == "where":
            args.insert(0, args[0] > 0)
        with warnings.catch_warnings(), library.autocast("cpu", dtype=getattr(library, low)):
            warnings.simplefilter("ignore")
            result = function(*args, *more)
    except (RuntimeError, ValueError, NotImplementedError, TypeError) as error:
        return f"error {type(error).__name__}"
    results = result if isinstance(result, (tuple, list)) else [result]
    return [str(each.dtype).rpartition(".")[2] for each in results if hasattr(each, "dtype")]


CASES = [
    (call, dtype, mixed)
    for call in CALLS
    for dtype, mixed in (
        ("float32", False),
        ("bfloat16", False),
        ("float64", False),
        ("float32", True),  # the second tensor and all further ones in bfloat16
    )
    if not mixed or "," in call[1] or len(call[1].split()) > 1
]


@pytest.mark.parametrize("low", ["bfloat16", "float16"])
@pytest.mark.parametrize(("call", "dtype", "mixed"), CASES)
def test_dtypes_are_torchs(call, dtype, mixed, low):
    ours, theirs = both(call[0])
    expected = outcome(torch, theirs, call, dtype, mixed, low)
    if str(expected).startswith("error"):
        pytest.skip("torch refuses these inputs")  # ours may take them
    assert outcome(tp, ours, call, dtype, mixed, low) == expected


def test_every_policy_names_something():
    for policy in policies():
        name = policy.op
        assert op_registry.has_op(name) or hasattr(F, name), name
        if not op_registry.has_op(name) or op_registry.get_op(name).owner == "nn":
            function = getattr(F, name, None)  # some ops are behind modules only
            assert hasattr(function, "__wrapped__") or op_registry.has_op(name), name


def test_no_name_has_two_policies():
    for table in (CPU, ACCELERATORS):
        names = [name for several in table.values() for name in several]
        assert len(names) == len(set(names))
