"""The names of torch's documented API: those that programs use resolve, the others are listed."""

import inspect

import pytest

import tensorplug as tp

# What public model and training repositories call, most of it in several of them.
TOP_LEVEL = """
FloatTensor Generator IntTensor LongTensor Size Tensor __version__ abs add all allclose arange
argmax argsort as_tensor bfloat16 bmm bool cat cdist chunk clamp clip complex64 cos cumsum
device diag dtype einsum empty empty_like enable_grad equal exp eye finfo flatten flip float
float16 float32 float64 floor from_numpy full full_like gather inf inference_mode int int32
int64 is_tensor isnan linspace load log long manual_seed matmul max maximum mean meshgrid min mm
mul multinomial no_grad norm ones ones_like outer pi polar pow rand randint randn randn_like
randperm repeat_interleave roll rsqrt save sigmoid sign sin softmax sort split sqrt stack sum
tanh tensor tensor_split topk tril triu uint8 unbind unique use_deterministic_algorithms
view_as_complex view_as_real where zeros zeros_like
"""
METHODS = """
T abs add_ all amax amin any argmax argsort backward bool byte ceil chunk clamp clamp_ clip
clone contiguous copy_ cos cpu cumsum data detach detach_ device dim div div_ double dtype
element_size eq exp expand expand_as fill_ flatten flip float floor gather grad half index_add_
index_select int is_contiguous is_floating_point item lerp log long masked_fill masked_fill_ max
mean median min mode mul mul_ narrow nbytes ndim new_empty new_ones new_zeros nonzero norm
normal_ numel numpy permute pow prod ravel real relu repeat repeat_interleave requires_grad
requires_grad_ reshape reshape_as resize round rsqrt scatter scatter_ shape sigmoid sin size
softmax sort split sqrt square squeeze std stride sub sum t tanh to tolist topk transpose triu
triu_ type type_as unbind unfold uniform_ unsqueeze var view view_as zero_
"""


@pytest.mark.parametrize("name", TOP_LEVEL.split())
def test_a_name_of_the_top_level(name):
    assert hasattr(tp, name)


@pytest.mark.parametrize("name", METHODS.split())
def test_a_method_or_attribute_of_tensors(name):
    assert hasattr(tp.zeros(1), name)


# --- what torch documents and is not here, with the reason ------------------------------------------

SPARSE = "copies of the parts of sparse tensors: clone() of a part is one"
QUANTIZED = "there are no quantized tensors"
SCRIPT = "torch.jit and its symbolic sizes are out of scope"
CONTROL = "control flow of compiled graphs"
DEVICE = "a device type that comes with its plugin"

MISSING = {
    CONTROL: "cond while_loop compile",
    SPARSE: """
        col_indices_copy crow_indices_copy indices_copy values_copy
    """,
    QUANTIZED: """
        dequantize fake_quantize_per_channel_affine fake_quantize_per_tensor_affine
        quantize_per_channel quantize_per_tensor quantize_per_tensor_dynamic quantized_batch_norm
        quantized_max_pool1d quantized_max_pool2d
    """,
    SCRIPT: """
        fork import_ir_module import_ir_module_from_buffer merge_type_from_type_comment parse_ir
        parse_schema parse_type_comment sym_float sym_int sym_ite sym_max sym_min sym_not sym_sum
        unify_type_list wait
    """,
    "about torch's own build and start": "compiled_with_cxx11_abi init_num_threads",
    "deprecated: set_default_dtype, set_default_device": "set_default_tensor_type",
    "a Generator is as safe": "thread_safe_generator",
}
MISSING_METHODS = {
    QUANTIZED: """
        dequantize int_repr q_per_channel_axis q_per_channel_scales q_per_channel_zero_points q_scale
        q_zero_point qscheme
    """,
    DEVICE: "ipu is_ipu is_xla mtia",
    "nested tensors": "to_padded_tensor",
    "another layout of memory": "to_mkldnn",
    "torch's own use": "grad_dtype index module_load",
}


def documented(owner):
    """Yield the names of functions, methods and attributes that have a docstring in torch."""
    for name in dir(owner):
        if name.startswith("_"):
            continue
        value = getattr(owner, name)
        if inspect.ismodule(value) or inspect.isclass(value):
            continue
        known = callable(value) or isinstance(value, property) or inspect.isgetsetdescriptor(value)
        if known and value.__doc__:
            yield name


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("path", "table"),
    [
        ("", MISSING),
        ("Tensor", MISSING_METHODS),
        ("linalg", {}),
        ("fft", {}),
        ("special", {}),
        ("signal.windows", {}),
    ],
)
def test_what_is_missing_is_listed(path, table):
    torch = pytest.importorskip("torch", reason="torch says which names it documents")
    theirs, ours = torch, tp
    for part in filter(None, path.split(".")):
        theirs, ours = getattr(theirs, part), getattr(ours, part)
    missing = {name for name in documented(theirs) if not hasattr(ours, name)}
    listed = {name for names in table.values() for name in names.split()}
    elsewhere = {"compile"} & listed  # may come from a package of its own
    assert missing - elsewhere == listed - elsewhere
