"""Methods of Tensor without a body of their own: ops, conversions to a dtype, and what is always so.

The ops are listed for type checkers and editors; at run time the declarations add them. A test compares
the list with the declarations and prints the lines that are missing. ``Tensor.float()`` and its like, and ops
such as ``all``, have a class of their own here, because inside of it their names stand for them rather than
for Python's types and functions.
"""

# mypy: disable-error-code="possibly-undefined"
# pyright: reportPossiblyUnboundVariable=false

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final, Literal, Self

from ..device import dtypes
from ..device.dtypes import DType
from ..dispatch.op_registry import handle
from .mirrors import shows_conjugate
from .operators import Operators

CAST = handle("cast")

# What TYPE_CHECKING would be, but for one thing: mypy checks modules that import each other in an
# order in which imports below TYPE_CHECKING count least, and the ops have to come before this.
_FOR_TYPES: Final[bool] = bool()  # noqa: UP018  not to be seen through

if _FOR_TYPES:
    import tensorplug.core.ops.clamp as clamp_ops
    import tensorplug.core.ops.indexing.gather as gather_ops
    import tensorplug.core.ops.indexing.index_select as index_select_ops
    import tensorplug.core.ops.indexing.take as take_ops
    import tensorplug.core.ops.linalg.lu as lu_ops
    import tensorplug.core.ops.softmax as softmax_ops

    from ..ops import (
        bitwise,
        comparison,
        copying,
        cumulative,
        differences,
        distances,
        masking,
        norms,
        numeric,
        rearranging,
        shorthands,
        triangles,
    )
    from ..ops.arithmetic import division, fused, pointwise, powers
    from ..ops.creation import creation_like
    from ..ops.elementary import activation, circular, exponential, rounding, trigonometry
    from ..ops.fft import short_time
    from ..ops.indexing import indexing
    from ..ops.joining import grids
    from ..ops.linalg import factors, functions, solvers, spectra, triangular
    from ..ops.matmul import contractions, products
    from ..ops.random import choices, distributions, fills
    from ..ops.reductions import extremes, hashing, reductions
    from ..ops.shape import copies, dimension_order, expansion, shape, splitting
    from ..ops.sorting import sets, sorting
    from ..ops.special import bessel, error_functions, gamma
    from ..ops.statistics import histograms, quantiles, variance
    from ..ops.strided import diagonals, numbers, scattered, strided
    from . import resizing


def _converter(name: str, dtype: DType) -> Callable[..., Any]:
    """Return the method that converts to one dtype."""

    def convert(self: Any, memory_format: Any = None) -> Any:
        if memory_format is not None:
            return self.to(dtype, memory_format=memory_format)
        return self if self._key.dtype is dtype else CAST.call(self, dtype)

    convert.__name__ = name
    convert.__doc__ = f"Return the tensor as {dtype!r}; itself if it is that already."
    return convert


class TensorMethods(Operators):
    """Base of Tensor with methods that are ops, that convert to a dtype, or that have one answer for all."""

    __slots__ = ()

    bool = _converter("bool", dtypes.bool_)
    byte = _converter("byte", dtypes.uint8)
    char = _converter("char", dtypes.int8)
    short = _converter("short", dtypes.int16)
    int = _converter("int", dtypes.int32)
    long = _converter("long", dtypes.int64)
    half = _converter("half", dtypes.float16)
    bfloat16 = _converter("bfloat16", dtypes.bfloat16)
    float = _converter("float", dtypes.float32)
    double = _converter("double", dtypes.float64)
    chalf = _converter("chalf", dtypes.complex32)
    cfloat = _converter("cfloat", dtypes.complex64)
    cdouble = _converter("cdouble", dtypes.complex128)

    # Tensors are dense where their class says nothing else, and never quantized; programs ask all the same.

    @property
    def is_sparse(self) -> Literal[True, False]:
        """Whether each element is stored with its coordinates."""
        return False

    @property
    def is_sparse_csr(self) -> Literal[True, False]:
        """Whether only some elements are stored, row by row."""
        return False

    @property
    def is_quantized(self) -> Literal[False]:
        """Whether elements stand for multiples of a scale: never."""
        return False

    @property
    def is_nested(self) -> Literal[False]:
        """Whether rows differ in length: never."""
        return False

    @property
    def is_mkldnn(self) -> Literal[False]:
        """Whether a library keeps the memory in a layout of its own: never."""
        return False

    @property
    def name(self) -> None:
        """The tensor's name: it has none."""
        return None

    def is_distributed(self) -> Literal[False]:
        """Return whether parts of the tensor live elsewhere: never."""
        return False

    def is_conj(self) -> builtins.bool:
        """Return whether ``conj()`` made the tensor, so that it shares its elements with another."""
        return shows_conjugate(self)

    def is_neg(self) -> Literal[False]:
        """Return whether a negation is still to be done: never."""
        return False

    def resolve_conj(self) -> Any:
        """Return a copy if ``conj()`` made the tensor, else the tensor itself."""
        tensor: Any = self
        return tensor.clone() if shows_conjugate(tensor) else tensor

    def _conj(self) -> Any:
        """Return the conjugate as a tensor of its own; of a real tensor, the tensor itself."""
        tensor: Any = self
        return tensor.conj_physical() if tensor._key.dtype.is_complex else tensor

    def resolve_neg(self) -> Self:
        """Return the tensor itself: no negation is ever still to be done."""
        return self

    if _FOR_TYPES:
        abs = pointwise.abs
        abs_ = pointwise.abs
        absolute = pointwise.abs
        absolute_ = pointwise.abs
        acos = trigonometry.acos
        acos_ = trigonometry.acos
        acosh = trigonometry.acosh
        acosh_ = trigonometry.acosh
        add = pointwise.add
        add_ = pointwise.add
        addbmm = products.addbmm
        addbmm_ = products.addbmm
        addcdiv = fused.addcdiv
        addcdiv_ = fused.addcdiv
        addcmul = fused.addcmul
        addcmul_ = fused.addcmul
        addmm = products.addmm
        addmm_ = products.addmm
        addmv = products.addmv
        addmv_ = products.addmv
        addr = products.addr
        addr_ = products.addr
        adjoint = dimension_order.adjoint
        all = reductions.all
        allclose = comparison.allclose
        amax = reductions.amax
        amin = reductions.amin
        aminmax = reductions.aminmax
        angle = numeric.angle
        any = reductions.any
        arccos = trigonometry.acos
        arccos_ = trigonometry.acos
        arccosh = trigonometry.acosh
        arccosh_ = trigonometry.acosh
        arcsin = trigonometry.asin
        arcsin_ = trigonometry.asin
        arcsinh = trigonometry.asinh
        arcsinh_ = trigonometry.asinh
        arctan = trigonometry.atan
        arctan2 = circular.atan2
        arctan2_ = circular.atan2
        arctan_ = trigonometry.atan
        arctanh = trigonometry.atanh
        arctanh_ = trigonometry.atanh
        argmax = reductions.argmax
        argmin = reductions.argmin
        argsort = sorting.argsort
        argwhere = sorting.argwhere
        as_strided = strided.as_strided
        as_strided_ = strided.as_strided_
        as_strided_scatter = scattered.as_strided_scatter
        asin = trigonometry.asin
        asin_ = trigonometry.asin
        asinh = trigonometry.asinh
        asinh_ = trigonometry.asinh
        atan = trigonometry.atan
        atan2 = circular.atan2
        atan2_ = circular.atan2
        atan_ = trigonometry.atan
        atanh = trigonometry.atanh
        atanh_ = trigonometry.atanh
        baddbmm = products.baddbmm
        baddbmm_ = products.baddbmm
        bernoulli = distributions.bernoulli
        bernoulli_ = fills.bernoulli
        bincount = histograms.bincount
        bitwise_and = bitwise.bitwise_and
        bitwise_and_ = bitwise.bitwise_and
        bitwise_left_shift = bitwise.bitwise_left_shift
        bitwise_left_shift_ = bitwise.bitwise_left_shift
        bitwise_not = bitwise.bitwise_not
        bitwise_not_ = bitwise.bitwise_not
        bitwise_or = bitwise.bitwise_or
        bitwise_or_ = bitwise.bitwise_or
        bitwise_right_shift = bitwise.bitwise_right_shift
        bitwise_right_shift_ = bitwise.bitwise_right_shift
        bitwise_xor = bitwise.bitwise_xor
        bitwise_xor_ = bitwise.bitwise_xor
        bmm = products.bmm
        broadcast_to = expansion.broadcast_to
        cauchy_ = fills.cauchy
        ceil = rounding.ceil
        ceil_ = rounding.ceil
        cholesky = factors.cholesky
        cholesky_inverse = triangular.cholesky_inverse
        cholesky_solve = triangular.cholesky_solve
        chunk = splitting.chunk
        clamp = clamp_ops.clamp
        clamp_ = clamp_ops.clamp
        clamp_max = clamp_ops.clamp_max
        clamp_max_ = clamp_ops.clamp_max
        clamp_min = clamp_ops.clamp_min
        clamp_min_ = clamp_ops.clamp_min
        clip = clamp_ops.clamp
        clip_ = clamp_ops.clamp
        clone = copying.clone
        combinations = grids.combinations
        conj = pointwise.conj
        conj_physical = pointwise.conj_physical
        conj_physical_ = pointwise.conjugate_copy
        copy_ = copying.copy
        copysign = numeric.copysign
        copysign_ = numeric.copysign
        corrcoef = variance.corrcoef
        cos = circular.cos
        cos_ = circular.cos
        cosh = trigonometry.cosh
        cosh_ = trigonometry.cosh
        count_nonzero = reductions.count_nonzero
        cov = variance.cov
        cross = functions.cross
        cummax = cumulative.cummax
        cummin = cumulative.cummin
        cumprod = cumulative.cumprod
        cumprod_ = cumulative.cumprod
        cumsum = cumulative.cumsum
        cumsum_ = cumulative.cumsum
        deg2rad = numeric.deg2rad
        deg2rad_ = numeric.deg2rad
        det = functions.det
        diag = diagonals.diag
        diag_embed = diagonals.diag_embed
        diagflat = diagonals.diagflat
        diagonal = diagonals.diagonal
        diagonal_scatter = scattered.diagonal_scatter
        diff = differences.diff
        digamma = gamma.digamma
        digamma_ = gamma.digamma
        dim_order = shorthands.dim_order
        dist = distances.dist
        div = division.div
        div_ = division.div
        divide = division.div
        divide_ = division.div
        dot = products.dot
        dsplit = splitting.dsplit
        eq = comparison.eq
        eq_ = comparison.eq
        equal = comparison.equal
        erf = error_functions.erf
        erf_ = error_functions.erf
        erfc = error_functions.erfc
        erfc_ = error_functions.erfc
        erfinv = error_functions.erfinv
        erfinv_ = error_functions.erfinv
        exp = exponential.exp
        exp2 = exponential.exp2
        exp2_ = exponential.exp2
        exp_ = exponential.exp
        expand = expansion.expand
        expand_as = expansion.expand_as
        expm1 = exponential.expm1
        expm1_ = exponential.expm1
        exponential_ = fills.exponential
        fill = masking.fill
        fill_ = masking.fill_
        fill_diagonal_ = shorthands.fill_diagonal_
        fix = rounding.trunc
        fix_ = rounding.trunc
        flatten = shape.flatten
        flip = rearranging.flip
        fliplr = rearranging.fliplr
        flipud = rearranging.flipud
        float_power = powers.float_power
        float_power_ = powers.float_power
        floor = rounding.floor
        floor_ = rounding.floor
        floor_divide = division.floor_divide
        floor_divide_ = division.floor_divide
        fmax = clamp_ops.fmax
        fmin = clamp_ops.fmin
        fmod = division.fmod
        fmod_ = division.fmod
        frac = rounding.frac
        frac_ = rounding.frac
        frexp = numeric.frexp
        gather = gather_ops.gather
        gcd = numeric.gcd
        gcd_ = numeric.gcd
        ge = comparison.ge
        ge_ = comparison.ge
        geometric_ = fills.geometric
        geqrf = factors.geqrf
        ger = products.outer
        greater = comparison.gt
        greater_ = comparison.gt
        greater_equal = comparison.ge
        greater_equal_ = comparison.ge
        gt = comparison.gt
        gt_ = comparison.gt
        hash_tensor = hashing.hash_tensor
        heaviside = numeric.heaviside
        heaviside_ = numeric.heaviside
        histc = histograms.histc
        histogram = histograms.histogram
        hsplit = splitting.hsplit
        hypot = numeric.hypot
        hypot_ = numeric.hypot
        i0 = bessel.i0
        i0_ = bessel.i0
        igamma = gamma.igamma
        igamma_ = gamma.igamma
        igammac = gamma.igammac
        igammac_ = gamma.igammac
        index_add = index_select_ops.index_add
        index_add_ = index_select_ops.index_add
        index_copy = index_select_ops.index_copy
        index_copy_ = index_select_ops.index_copy
        index_fill = index_select_ops.index_fill
        index_fill_ = index_select_ops.index_fill
        index_put = indexing.index_put
        index_put_ = indexing.index_put
        index_reduce = index_select_ops.index_reduce
        index_reduce_ = index_select_ops.index_reduce
        index_select = index_select_ops.index_select
        inner = products.inner
        inverse = solvers.inverse
        isclose = comparison.isclose
        isfinite = comparison.isfinite
        isinf = comparison.isinf
        isnan = comparison.isnan
        isneginf = comparison.isneginf
        isposinf = comparison.isposinf
        isreal = comparison.isreal
        istft = short_time.istft
        kron = contractions.kron
        kthvalue = sorting.kthvalue
        lcm = numeric.lcm
        lcm_ = numeric.lcm
        ldexp = numeric.ldexp
        ldexp_ = numeric.ldexp
        le = comparison.le
        le_ = comparison.le
        lerp = fused.lerp
        lerp_ = fused.lerp
        less = comparison.lt
        less_ = comparison.lt
        less_equal = comparison.le
        less_equal_ = comparison.le
        lgamma = gamma.lgamma
        lgamma_ = gamma.lgamma
        log = exponential.log
        log10 = exponential.log10
        log10_ = exponential.log10
        log1p = exponential.log1p
        log1p_ = exponential.log1p
        log2 = exponential.log2
        log2_ = exponential.log2
        log_ = exponential.log
        log_normal_ = fills.log_normal
        log_softmax = softmax_ops.log_softmax
        logaddexp = numeric.logaddexp
        logaddexp2 = numeric.logaddexp2
        logcumsumexp = cumulative.logcumsumexp
        logdet = functions.logdet
        logical_and = bitwise.logical_and
        logical_and_ = bitwise.logical_and
        logical_not = bitwise.logical_not
        logical_not_ = bitwise.logical_not
        logical_or = bitwise.logical_or
        logical_or_ = bitwise.logical_or
        logical_xor = bitwise.logical_xor
        logical_xor_ = bitwise.logical_xor
        logit = error_functions.logit
        logit_ = error_functions.logit
        logsumexp = softmax_ops.logsumexp
        lt = comparison.lt
        lt_ = comparison.lt
        lu = lu_ops.lu
        lu_solve = triangular.lu_solve
        masked_fill = masking.masked_fill
        masked_fill_ = masking.masked_fill
        masked_scatter = masking.masked_scatter
        masked_scatter_ = masking.masked_scatter
        masked_select = masking.masked_select
        matmul = products.matmul
        matrix_exp = functions.matrix_exp
        matrix_power = functions.matrix_power
        max = extremes.max
        maximum = clamp_ops.maximum
        mean = reductions.mean
        median = sorting.median
        min = extremes.min
        minimum = clamp_ops.minimum
        mm = products.mm
        mode = sorting.mode
        moveaxis = dimension_order.movedim
        movedim = dimension_order.movedim
        msort = sorting.msort
        mul = pointwise.mul
        mul_ = pointwise.mul
        multinomial = choices.multinomial
        multiply = pointwise.mul
        multiply_ = pointwise.mul
        mv = products.mv
        mvlgamma = gamma.mvlgamma
        mvlgamma_ = gamma.mvlgamma
        nan_to_num = numeric.nan_to_num
        nan_to_num_ = numeric.nan_to_num
        nanmean = reductions.nanmean
        nanmedian = sorting.nanmedian
        nanquantile = quantiles.nanquantile
        nansum = reductions.nansum
        narrow = indexing.narrow
        narrow_copy = copies.narrow_copy
        ne = comparison.ne
        ne_ = comparison.ne
        neg = pointwise.neg
        neg_ = pointwise.neg
        negative = pointwise.neg
        negative_ = pointwise.neg
        new_empty = creation_like.new_empty
        new_empty_strided = creation_like.new_empty_strided
        new_full = creation_like.new_full
        new_ones = creation_like.new_ones
        new_tensor = creation_like.new_tensor
        new_zeros = creation_like.new_zeros
        nextafter = numeric.nextafter
        nextafter_ = numeric.nextafter
        nonzero = sorting.nonzero
        nonzero_static = sorting.nonzero_static
        norm = norms.norm
        normal_ = fills.normal
        not_equal = comparison.ne
        not_equal_ = comparison.ne
        orgqr = factors.orgqr
        ormqr = factors.ormqr
        outer = products.outer
        permute = dimension_order.permute
        pinverse = spectra.pinverse
        polygamma = gamma._polygamma_method
        polygamma_ = shorthands.polygamma_
        positive = pointwise.positive
        pow = powers.pow
        pow_ = powers.pow
        prod = reductions.prod
        put = take_ops.put
        put_ = take_ops.put
        qr = factors.qr
        quantile = quantiles.quantile
        rad2deg = numeric.rad2deg
        rad2deg_ = numeric.rad2deg
        random_ = fills.random
        ravel = shape.ravel
        reciprocal = division.reciprocal
        reciprocal_ = division.reciprocal
        relu = activation.relu
        relu_ = activation.relu
        remainder = division.remainder
        remainder_ = division.remainder
        renorm = distances.renorm
        renorm_ = distances.renorm
        repeat = rearranging.repeat
        repeat_interleave = rearranging.repeat_interleave
        reshape = shape.reshape
        reshape_as = shape.reshape_as
        resize = shorthands.resize
        resize_ = resizing.resize_
        resize_as_ = resizing.resize_as_
        roll = rearranging.roll
        rot90 = rearranging.rot90
        round = rounding.round
        round_ = rounding.round
        rsqrt = exponential.rsqrt
        rsqrt_ = exponential.rsqrt
        rsub = pointwise.rsub
        scatter = gather_ops.scatter
        scatter_ = gather_ops.scatter
        scatter_add = gather_ops.scatter_add
        scatter_add_ = gather_ops.scatter_add
        scatter_reduce = gather_ops.scatter_reduce
        scatter_reduce_ = gather_ops.scatter_reduce
        select = indexing.select
        select_scatter = scattered.select_scatter
        set_ = resizing.set_
        sgn = pointwise.sgn
        sgn_ = pointwise.sgn
        sigmoid = activation.sigmoid
        sigmoid_ = activation.sigmoid
        sign = pointwise.sign
        sign_ = pointwise.sign
        signbit = numeric.signbit
        sin = circular.sin
        sin_ = circular.sin
        sinc = numeric.sinc
        sinc_ = numeric.sinc
        sinh = trigonometry.sinh
        sinh_ = trigonometry.sinh
        slice_scatter = scattered.slice_scatter
        slogdet = functions.slogdet
        softmax = softmax_ops.softmax
        sort = sorting.sort
        split = splitting.split
        split_with_sizes = splitting.split_with_sizes
        sqrt = exponential.sqrt
        sqrt_ = exponential.sqrt
        square = powers.square
        square_ = powers.square
        squeeze = shape.squeeze
        squeeze_ = shape.squeeze
        std = variance.std
        stft = short_time.stft
        sub = pointwise.sub
        sub_ = pointwise.sub
        subtract = pointwise.sub
        subtract_ = pointwise.sub
        sum = reductions.sum
        sum_to_size = expansion.sum_to_size
        svd = spectra.svd
        swapaxes = dimension_order.transpose
        swapaxes_ = dimension_order.transpose
        swapdims = dimension_order.transpose
        swapdims_ = dimension_order.transpose
        t = dimension_order.t
        t_ = dimension_order.t
        take = take_ops.take
        take_along_dim = gather_ops.take_along_dim
        tan = trigonometry.tan
        tan_ = trigonometry.tan
        tanh = circular.tanh
        tanh_ = circular.tanh
        tensor_split = splitting.tensor_split
        tile = rearranging.tile
        topk = sorting.topk
        trace = functions.trace
        transpose = dimension_order.transpose
        transpose_ = dimension_order.transpose
        triangular_solve = triangular.triangular_solve
        tril = triangles.tril
        tril_ = triangles.tril
        triu = triangles.triu
        triu_ = triangles.triu
        true_divide = division.div
        true_divide_ = division.div
        trunc = rounding.trunc
        trunc_ = rounding.trunc
        unbind = splitting.unbind
        unflatten = shape.unflatten
        unfold = strided.unfold
        uniform_ = fills.uniform
        unique = sets.unique
        unique_consecutive = sets.unique_consecutive
        unsafe_chunk = shorthands.unsafe_chunk
        unsafe_split = shorthands.unsafe_split
        unsafe_split_with_sizes = shorthands.unsafe_split_with_sizes
        unsqueeze = shape.unsqueeze
        unsqueeze_ = shape.unsqueeze
        var = variance.var
        vdot = products.vdot
        view_as = shape.view_as
        view_as_complex = numbers.view_as_complex
        view_as_real = numbers.view_as_real
        vsplit = splitting.vsplit
        where = masking._where_method
        xlogy = numeric.xlogy
        xlogy_ = numeric.xlogy
        zero_ = masking.zero_

    if _FOR_TYPES:  # what the facade adds, and finds in a package of its own when it is called

        def _indices(self) -> Any: ...
        def _nnz(self) -> Any: ...
        def _values(self) -> Any: ...
        def ccol_indices(self) -> Any: ...
        def coalesce(self) -> Any: ...
        def col_indices(self) -> Any: ...
        def crow_indices(self) -> Any: ...
        def dense_dim(self) -> Any: ...
        def indices(self) -> Any: ...
        def hardshrink(self, lambd: Any = 0.5) -> Any: ...
        def is_coalesced(self) -> Any: ...
        def prelu(self, weight: Any) -> Any: ...
        def row_indices(self) -> Any: ...
        def smm(self, mat: Any) -> Any: ...
        def sparse_dim(self) -> Any: ...
        def sparse_mask(self, mask: Any) -> Any: ...
        def sparse_resize_(self, size: Any, sparse_dim: Any, dense_dim: Any) -> Any: ...
        def sparse_resize_and_clear_(self, size: Any, sparse_dim: Any, dense_dim: Any) -> Any: ...
        def sspaddmm(self, mat1: Any, mat2: Any, *, beta: Any = 1, alpha: Any = 1) -> Any: ...
        def to_sparse(
            self,
            sparse_dim: Any = None,
            *,
            layout: Any = None,
            blocksize: Any = None,
            dense_dim: Any = None,
        ) -> Any: ...
        def to_sparse_bsc(self, blocksize: Any, dense_dim: Any = None) -> Any: ...
        def to_sparse_bsr(self, blocksize: Any, dense_dim: Any = None) -> Any: ...
        def to_sparse_coo(self) -> Any: ...
        def to_sparse_csc(self, dense_dim: Any = None) -> Any: ...
        def to_sparse_csr(self, dense_dim: Any = None) -> Any: ...
        def values(self) -> Any: ...
