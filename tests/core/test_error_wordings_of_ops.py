# ruff: noqa: E501
"""Errors of ops hold the phrase by which people search for torch's, and have its type: rows by family."""

import math

import pytest
from test_error_wordings import error_of

import tensorplug as tp

try:
    import torch
except ImportError:
    torch = None


def ints(t, *shape):
    return t.ones(*shape, dtype=t.int64)


def double(t, *shape):
    return t.ones(*shape, dtype=t.float64)


def qr_of(t, mode, *shape):
    t.linalg.qr(t.ones(*shape, requires_grad=True), mode=mode)[1].sum().backward()


def pivoted(t, pivot):
    LU, pivots = t.linalg.lu_factor(t.eye(2))
    pivots[0] = pivot
    return LU, pivots


def F(t):
    return t.nn.functional


def masked(t):
    return __import__(f"{t.__name__}.masked").masked


def attend(t, query, mask):
    x = t.ones(query)
    t.nn.MultiheadAttention(4, 4)(x, x, x, attn_mask=t.ones(mask) > 0)


ROWS = [
    # --- reductions ---
    *[
        (f"range of [{low:g}, {high:g}] is not finite", lambda t, low=low, high=high: t.histc(t.ones(2), 4, low, high))
        for low, high in ((0, math.inf), (-math.inf, 1), (0.5, math.inf), (1e20, math.inf))
    ],
    ("range of [1, inf] is not finite", lambda t: t.histc(t.tensor([1.0, math.inf]), 4)),
    ("does not support complex inputs", lambda t: t.nansum(t.ones(2, dtype=t.complex64))),
    *[
        ("Could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: ",
         lambda t, dtype=dtype: masked(t).mean(t.ones(2, dtype=getattr(t, dtype))))
        for dtype in ("bool", "uint8", "int16", "int64")
    ],
    ("\"trace\" not implemented for 'Bool'", lambda t: t.ones(2, 2, dtype=t.bool).trace()),
    ("\"trace\" not implemented for 'Bool'", lambda t: t.trace(t.zeros(0, 2, dtype=t.bool))),
    *[
        (name, lambda t, name=name: getattr(t, name)(t.ones(2, 2), keepdim=True))
        for name in ("median", "nanmedian", "max", "min")
    ],
    *[
        ("There must be one `x` value for each sample point", lambda t, name=name: getattr(t, name)(t.ones(2, 3), t.ones(4)))
        for name in ("trapezoid", "trapz", "cumulative_trapezoid")
    ],
    *[
        ("Expected non-empty vector or matrix with optional 0-dim batch size, but got: ",
         lambda t, name=name, shape=shape, target=target: getattr(F(t), name)(t.ones(shape), t.zeros(target, dtype=t.int64)))
        for name in ("multi_margin_loss", "multilabel_margin_loss")
        for shape in ((0,), (2, 0), (2, 2, 2))
        for target in (shape, shape[:1], ())
    ],
    *[
        ("quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got other",
         lambda t, name=name: getattr(t, name)(t.ones(2), 0.5, interpolation="other"))
        for name in ("quantile", "nanquantile")
    ],
    *[
        ("Integral inputs not supported",
         lambda t, given=given: F(t).kl_div(*[x.to(getattr(t, d)) for x, d in zip((t.ones(3), t.ones(3)), given, strict=True)], reduction="sum"))
        for given in (("int64", "int64"), ("float32", "int32"), ("uint8", "float32"), ("bool", "bool"))
    ],
    *[
        ('" not implemented for \'' + kind, lambda t, n=n, dtype=dtype: getattr(F(t), f"avg_pool{n}d")(t.ones([1, 1] + [4] * n).to(getattr(t, dtype)), 2))
        for n in (1, 2, 3)
        for dtype, kind in (("bool", "Bool"), ("uint8", "Byte"), ("int8", "Char"), ("int16", "Short"), ("int32", "Int"))
    ],
    *[
        row
        for name in ("trapezoid", "cumulative_trapezoid")
        for row in (
            ("Currently, we only support dx as a real number", lambda t, name=name: getattr(t, name)(t.ones(2, 3), dx=1j)),
            ("received an invalid combination of arguments", lambda t, name=name: getattr(t, name)(t.ones(3), x=t.ones(3), dx=3)),
        )
    ],
    # --- lists of tensors ---
    *[
        ("Tensor list must have same number of elements as scalar list.",
         lambda t, name=name, given=given: getattr(t, f"_foreach_{name}")([t.ones(1)], given))
        for name in ("add", "sub_", "mul", "div_", "pow", "maximum", "minimum_", "clamp_min", "clamp_max_")
        for given in ([], [1.0, 2.0])
    ],
    ("Tensor list must have same number of elements as scalar list.",
     lambda t: t._foreach_addcmul([t.ones(1)], [t.ones(1)], [t.ones(1)], [1, 2])),
    # --- elementwise ---
    ("heaviside is not yet implemented for tensors with different dtypes.", lambda t: t.heaviside(t.ones(2), double(t, 2))),
    ("heaviside is not yet implemented for complex tensors.", lambda t: t.heaviside(t.ones(2) * 1j, t.ones(2) * 1j)),
    ("heaviside is not yet implemented for complex tensors.", lambda t: t.heaviside(t.ones(2), t.ones(2) * 1j)),
    ("operation's result requires dtype Double", lambda t: t.ones(2).float_power_(2)),
    ("operation's result requires dtype ComplexDouble", lambda t: t.ones(2).float_power_(2j)),
    ("operation's result requires dtype Double", lambda t: t.float_power(2, t.ones(2), out=ints(t, 2))),
    ("isposinf does not support non-boolean outputs.", lambda t: t.isposinf(t.ones(2), out=t.ones(2))),
    ("signbit does not support non-boolean outputs.", lambda t: t.signbit(t.ones(2), out=t.ones(2))),
    ("isneginf does not support complex inputs.", lambda t: t.isneginf(t.ones(2) * 1j)),
    ("torch.frexp() only supports floating-point dtypes", lambda t: t.frexp(ints(t, 2))),
    ("torch.frexp() expects mantissa to have dtype float but got double",
     lambda t: t.frexp(t.ones(2), out=(double(t, 2), t.ones(2, dtype=t.int32)))),
    ("torch.frexp() expects exponent to have", lambda t: t.frexp(t.ones(2), out=(t.ones(2), t.ones(2)))),
    *[
        ("weight should have at least three dimensions",
         lambda t, n=n: getattr(t.nn.functional, f"conv{n}d")(t.ones(1, 1, *[4] * n), t.ones(1, 2)))
        for n in (1, 2, 3)
    ],
    *[
        ("'output_size' should contain one int (got 0)",
         lambda t, kind=kind: getattr(t.nn.functional, f"adaptive_{kind}_pool1d")(t.ones(1, 2, 3), ()))
        for kind in ("avg", "max")
    ],
    ("Tau must be positive, got: -1 instead.", lambda t: t.signal.windows.exponential(3, tau=-1)),
    ("Standard deviation must be positive, got: -1 instead.", lambda t: t.signal.windows.gaussian(3, std=-1)),
    ("beta must be non-negative, got: -1 instead.", lambda t: t.signal.windows.kaiser(3, beta=-1)),
    ("In-place abs is not supported for complex tensors.", lambda t: (t.ones(2) * 1j).abs_()),
    ("polygamma(n, x) does not support negative n.", lambda t: t.polygamma(-1, t.ones(2))),
    ("Boolean alpha only supported for Boolean results.", lambda t: t.add(t.ones(2), t.ones(2), alpha=True)),
    ("For integral input tensors, argument alpha must not be a floating point number.", lambda t: t.add(ints(t, 2), ints(t, 2), alpha=1.0)),
    ("For non-complex input tensors, argument alpha must not be a complex number.", lambda t: t.add(t.ones(2), t.ones(2), alpha=1j)),
    ("with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead.",
     lambda t: t.tensor([True]) - t.tensor([True])),
    ("If you are trying to invert a mask, use the `~` or `logical_not()` operator instead.", lambda t: 1 - t.tensor([True])),
    # --- reductions, statistics, sorting ---
    ("linalg.vector_norm cannot compute the inf norm", lambda t: t.linalg.vector_norm(t.ones(0), float("inf"))),
    ("diff expects input to be at least one-dimensional", lambda t: t.diff(t.tensor(2.0))),
    ("diff expects prepend or append to be the same dimension as input", lambda t: t.diff(t.ones(2, 3), prepend=t.ones(3))),
    ("quantile() input tensor must be non-empty", lambda t: t.quantile(t.ones(0), 0.5)),
    ("quantile() q values must be in the range [0, 1]", lambda t: t.nanquantile(t.ones(2), t.ones(1) * 2)),
    ("quantile() out tensor must be same dtype as the input tensor", lambda t: t.quantile(t.ones(2), 0.5, out=double(t, 2))),
    ("input tensor and bins tensors should have the same dtype", lambda t: t.histogram(t.ones(2), double(t, 2))),
    ("bins tensor should have one dimension, but got 2 dimensions", lambda t: t.histogram(t.ones(2), t.ones(2, 2))),
    ("bins tensor should have at least 1 element", lambda t: t.histogram(t.ones(2), t.ones(0))),
    ("min should not exceed max", lambda t: t.histogram(t.ones(2), 2, range=(1, 0))),
    ("input tensor and hist tensor should have the same dtype", lambda t: t.histogram(t.ones(2), 2, out=(double(t, 2), t.ones(3)))),
    ("input tensor and weight tensor should have the same dtype", lambda t: t.histogram(t.ones(2), 2, weight=double(t, 2))),
    ("expected scalar type 'Float' but got 'Double' for values", lambda t: t.mode(t.ones(2), out=(double(t, 1), ints(t, 1)))),
    ("expected scalar type 'Long' but got 'Float' for indices", lambda t: t.mode(t.ones(2), out=(t.ones(1), t.ones(1)))),
    # --- products ---
    ("dot : expected both vectors to have same dtype", lambda t: t.dot(t.ones(2), double(t, 2))),
    ("dot : expected both vectors to have same dtype", lambda t: t.vdot(t.ones(2), double(t, 2))),
    ("both inputs should have same dtype", lambda t: t.inner(t.ones(2), double(t, 2))),
    ("inner() the last dimension must match on both input tensors but got shapes [2, 3] and [2, 2]",
     lambda t: t.inner(t.ones(2, 3), t.ones(2, 2))),
    ("chain_matmul(): Expected one or more matrices", lambda t: t.chain_matmul()),
    ("the first tensor must be 1D or 2D", lambda t: t.linalg.multi_dot([t.ones(()), t.ones(2)])),
    ("the last tensor must be 1D or 2D", lambda t: t.linalg.multi_dot([t.ones(2), t.ones(())])),
    ("tensor 1 must be 2D", lambda t: t.linalg.multi_dot([t.ones(2), t.ones(2), t.ones(2)])),
    ("all tensors must have be the same dtype", lambda t: t.linalg.multi_dot([t.ones(2), double(t, 2)])),
    ("expected out tensor to have dtype", lambda t: t.linalg.multi_dot([t.ones(2), t.ones(2)], out=double(t, 0))),
    ("found '.' for operand 0 that is not part of any ellipsis", lambda t: t.einsum(". ..", t.ones(2))),
    ("found '.' for operand 0 for which an ellipsis was already found", lambda t: t.einsum("... ...", t.ones(2))),
    ("found '.' for output but an ellipsis (...) was already found", lambda t: t.einsum("a->... .", t.ones(2))),
    ("found '.' for output that is not part of any ellipsis (...)", lambda t: t.einsum("a->..", t.ones(2))),
    ("invalid subscript given at index 0", lambda t: t.einsum("1", t.ones(2))),
    ("invalid subscript given at index 3", lambda t: t.einsum("a->1", t.ones(2))),
    ("invalid subscript given at index 2", lambda t: t.einsum("a,1->a", t.ones(2), t.ones(2))),
    ("the number of subscripts in the equation (2) is more than the number of dimensions (1) for operand 0",
     lambda t: t.einsum("ai...", t.ones(2))),
    ("the number of subscripts in the equation (2) does not match the number of dimensions (1) for operand 0 and no ellipsis was given",
     lambda t: t.einsum("ai", t.ones(2))),
    ("not within the valid range [0, 52)", lambda t: t.einsum(t.ones(2), [52])),
    # --- linear algebra ---
    ("input must have at least 2 dimensions", lambda t: t.linalg.lstsq(t.ones(2), t.ones(2))),
    ("other must have at least 1 dimension", lambda t: t.linalg.lstsq(t.ones(2, 2), t.tensor(1.0))),
    ("input.size(-2) should match other.size(-1)", lambda t: t.linalg.lstsq(t.ones(2, 3), t.ones(3))),
    ("input.size(-2) should match other.size(-2)", lambda t: t.linalg.lstsq(t.ones(2, 3), t.ones(3, 1))),
    ("parameter `driver` should be one of (gels, gelsy, gelsd, gelss)", lambda t: t.linalg.lstsq(t.eye(2), t.eye(2), driver="x")),
    ("input must have at least 2 dimensions", lambda t: t.linalg.householder_product(t.ones(2), t.ones(2))),
    ("tau dtype Int does not match input dtype", lambda t: t.linalg.householder_product(t.ones(2, 2), t.ones(2, dtype=t.int32))),
    ("expected a tensor with 2 or more dimensions", lambda t: t.linalg.pinv(t.ones(2))),
    ("rcond tensor of complex type is not supported", lambda t: t.linalg.pinv(t.eye(2), rcond=t.tensor(1j))),
    ("linalg.eig: input tensor should not contain infs or NaNs", lambda t: t.linalg.eig(t.eye(2) * float("nan"))),
    ("Expected eigenvalues to be safely castable from", lambda t: t.linalg.eig(t.eye(2), out=(t.ones(0), t.ones(0)))),
    ("Expected eigenvectors to be safely castable from",
     lambda t: t.linalg.eig(t.eye(2), out=(t.ones(0, dtype=t.complex64), t.ones(0)))),
    ("Expected eigenvalues to be safely castable from", lambda t: t.linalg.eigvals(t.eye(2), out=t.ones(0))),
    ("but got int instead", lambda t: t.linalg.inv(t.eye(2), out=t.ones(0, dtype=t.int32))),
    ("qr received unrecognized mode 'hello'", lambda t: t.linalg.qr(t.eye(2), mode="hello")),
    ("The derivative of linalg.qr depends on Q", lambda t: qr_of(t, "r", 3, 2)),
    ("The QR decomposition is not differentiable when mode='complete' and nrows > ncols", lambda t: qr_of(t, "complete", 3, 2)),
    ("smaller or equal to LU.size(-2)", lambda t: t.linalg.lu_solve(*pivoted(t, 3), t.ones(2, 1))),
    ("greater or equal to 1", lambda t: t.linalg.lu_solve(*pivoted(t, 0), t.ones(2, 1))),
    ("between 1 and LU.size(-2)", lambda t: t.lu_unpack(*pivoted(t, 0))),
    ("between 1 and LU.size(-2)", lambda t: t.lu_unpack(*pivoted(t, 3))),
    ("LU_pivots is expected to be a contiguous tensor of torch.int32 dtype", lambda t: t.lu_unpack(t.eye(2), ints(t, 2))),
    ("cholesky_inverse: The diagonal element 2 is zero", lambda t: t.cholesky_inverse(t.tensor([[1.0, 0.0], [1.0, 0.0]]))),
    ("cholesky_inverse: (Batch element 1): The diagonal element 1 is zero",
     lambda t: t.cholesky_inverse(t.stack([t.eye(2), t.zeros(2, 2)]))),
    ("linalg.cond got an invalid norm type: 5", lambda t: t.linalg.cond(t.eye(2), 5)),
    ("linalg.cond got an invalid norm type: wrong", lambda t: t.linalg.cond(t.eye(2), "wrong")),
    ("A must have at least 2 dimensions", lambda t: t.linalg.norm(t.ones(2), "fro")),
    ("linalg.matrix_norm: dim must be a 2-tuple", lambda t: t.linalg.norm(t.eye(2), "nuc", 0)),
    ("linalg.matrix_norm: Order 3.5 not supported", lambda t: t.linalg.norm(t.eye(2), 3.5)),
    ("dims must be different", lambda t: t.linalg.norm(t.eye(2), 2, (-1, 1))),
    # --- pooling ---
    ("pad should be smaller than or equal to half of kernel size",
     lambda t: F(t).max_pool2d(t.ones(1, 1, 9, 9), 3, 1, 2, 3)),
    ("pad should be smaller than or equal to half of kernel size",
     lambda t: F(t).max_pool3d(t.ones(1, 1, 9, 9, 9), 3, 1, 2, 3)),
    ("Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input", lambda t: F(t).max_pool2d(t.ones(1, 0, 9, 9), 2)),
    ("Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input", lambda t: F(t).avg_pool2d(t.ones(1, 0, 9, 9), 2)),
    ("Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input", lambda t: F(t).max_pool1d(t.ones(1, 0, 9), 2)),
    ("Expected input's non-batch dimensions to have positive length", lambda t: F(t).avg_pool3d(t.ones(1, 0, 9, 9, 9), 2)),
    ("not implemented for", lambda t: F(t).adaptive_avg_pool2d(ints(t, 1, 1, 4, 4), 2)),
    ("not implemented for", lambda t: F(t).adaptive_max_pool1d(ints(t, 1, 1, 4), 2)),
    ("kernel_size must either be a single Int or tuple of three Ints", lambda t: F(t).fractional_max_pool3d(t.ones(1, 1, 4, 4, 4), (1,), 2)),
    ("output_size must either be a single Int or tuple of three Ints", lambda t: F(t).fractional_max_pool3d(t.ones(1, 1, 4, 4, 4), 2, (3,))),
    ("kernel_size must either be a single Int or tuple of ", lambda t: F(t).fractional_max_pool2d(t.ones(1, 1, 4, 4), (1,), 2)),
    ("Expect _random_samples", lambda t: F(t).fractional_max_pool2d(t.ones(1, 1, 4, 4), 2, 2, _random_samples=t.ones(0, 1, 2))),
    # --- dimensions ---
    *[
        (f"Dimension specified as {dim} but tensor has no dimensions", lambda t, name=name, dim=dim: getattr(t.fft, name)(t.tensor(1.0), dim=(dim,)))
        for name in (*(f"{kind}{many}" for kind in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft") for many in ("2", "n")), "fftshift", "ifftshift")
        for dim in (0, -1)
    ],
    *[
        ("Dimension specified as 0 but tensor has no dimensions", call)
        for call in (
            lambda t: t.fft.fft(t.tensor(1.0), dim=0),
            lambda t: t.gradient(t.tensor(1.0), dim=0),
            lambda t: t.gradient(t.tensor(1.0), dim=(0,)),
            lambda t: t.cross(t.tensor(1.0), t.tensor(1.0), dim=0),
            lambda t: t.norm_except_dim(t.tensor(1.0)),
            lambda t: t.roll(t.tensor(1.0), 1, 0),
            lambda t: t.unbind(t.tensor(1.0)),
            lambda t: t.unique(t.tensor(1.0), dim=0),
            lambda t: t.trapezoid(t.tensor(1.0), dim=0),
        )
    ],
    ("Dimension out of range (expected to be in range of [-2, 1], but got 5)", lambda t: t.norm_except_dim(t.ones(2, 3), 2, 5)),
    ("slice() cannot be applied to a 0-dim tensor.", lambda t: t.slice_scatter(t.tensor(1.0), t.tensor(1.0))),
    ("but got -1 at index 1", lambda t: t.empty_permuted((2, 3), (0, -1))),
    ("expected to be between 0 and 0, but got 3 at index 0", lambda t: t.empty_permuted((2,), (3,))),
    ("Duplicate dim not allowed", lambda t: t.empty_permuted((2, 3), (0, 0))),
    ("Input shapes should be of type ints, a tuple of ints, or a list of ints, got 1.0", lambda t: t.broadcast_shapes(t.tensor(1.0), 2)),
    # --- shapes of masks ---
    *[
        (said, lambda t, query=query, mask=mask: attend(t, query, mask))
        for query, mask, said in (
            ((4, 4), (5, 4, 4), "xpected `attn_mask` shape to be (4, 4, 4) but got "),
            ((4, 4), (4,), "expected `attn_mask` to be `None`, 2-D or 3-D but found 1-D tensor instead"),
            ((4, 4), (5, 4), "The shape of the 2D attn_mask is "),
            ((4, 2, 4), (5, 4, 4), "The shape of the 3D attn_mask is "),
        )
    ],
    # --- what is checked first ---
    *[
        (f"expected {label} to have {said}", lambda t, label=label, weights=weights: t.cov(t.ones(2, 3), **{label: weights(t)}))
        for label, said, weights in (
            ("fweights", "one or fewer dimensions but got fweights with 2", lambda t: t.ones(2, 3)),
            ("aweights", "one or fewer dimensions but got aweights with 2", lambda t: ints(t, 2, 3)),
            ("fweights", "integral dtype but got fweights with Float dtype", lambda t: t.ones(5)),
            ("aweights", "floating point dtype but got aweights with Long dtype", lambda t: ints(t, 5)),
        )
    ],
    *[
        ("negative padding is not supported", lambda t, n=n: getattr(F(t), f"conv{n}d")(t.ones(1, 1, *[4] * n), t.ones(1, 2, *[2] * n), padding=-1))
        for n in (1, 2, 3)
    ],
    ("masked_scatter_ only supports boolean masks, but got mask with dtype Float", lambda t: t.masked_scatter(t.ones(3), t.ones(3), t.ones(3))),
    *[
        (f"result type {kind} can't be cast to the desired output type {into}",
         lambda t, made=made, out=out: F(t).normalize(t.ones(2, 3, dtype=getattr(t, made)), out=t.ones(2, 3, dtype=getattr(t, out))))
        for made, kind, out, into in (
            ("float32", "Float", "int64", "Long"),
            ("float64", "Double", "uint8", "Byte"),
            ("complex64", "ComplexFloat", "float32", "Float"),
        )
    ],
]  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("index", range(len(ROWS)))
def test_phrase(index):
    phrase, call = ROWS[index]
    error = error_of(call, tp)
    assert phrase in str(error)
    if torch is not None:
        other = error_of(call, torch)
        assert phrase in str(other)
        names = [base.__name__ for base in type(error).__mro__]
        assert type(other).__name__.removeprefix("_") in names
