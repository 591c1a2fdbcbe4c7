# ruff: noqa: E501
"""Errors hold the phrase by which people search for torch's, and have its type.

Each row is a call, of a module that may be torch, and a phrase; with torch installed it is held to the same.
"""

import datetime as dt
import fractions

import numpy as np
import pytest

import tensorplug as tp

try:
    import torch
except ImportError:
    torch = None


def backward_twice(t):
    y = t.ones(2, requires_grad=True).exp().sum()
    y.backward()
    y.backward()


def modified(t):
    x = t.ones(2, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def loaded(t, **shapes):
    t.nn.Linear(2, 3).load_state_dict({name: t.ones(shape) for name, shape in shapes.items()})


def view_written(t):
    x = t.ones(2, requires_grad=True)
    x[:1].add_(1)


def unbound_written(t):
    x = t.ones(2, 2, requires_grad=True) * 1
    x.unbind()[0].add_(1)


def inference_saved(t):
    with t.inference_mode():
        x = t.ones(2)
    t.ones(2, requires_grad=True) * x


def inference_written(t):
    with t.inference_mode():
        x = t.ones(2)
    x.add_(1)


def one_optimizer(t, **options):
    t.optim.SGD([t.ones(1, requires_grad=True)], **options)


def F(t):
    return t.nn.functional


def set_(t, name, value, **options):
    setattr(t.ones(2, 2, **options), name, value)


def dual_of_dual(t):
    forward = t.autograd.forward_ad
    with forward.dual_level():
        forward.make_dual(t.ones(2), forward.make_dual(t.ones(2), t.ones(2)))


def constant(t):
    return lambda x: t.ones(2, requires_grad=True).sum() * 2


def parametrized(t, forward):
    part = type("Part", (t.nn.Module,), {"forward": lambda self, x: forward(x)})
    t.nn.utils.parametrize.register_parametrization(t.nn.Linear(2, 3), "weight", part())


def derivatives(t, name, *args, **options):
    getattr(t.autograd.functional, name)(*args, strict=True, **options)


ROWS = [
    # --- what has no data ---
    ("Cannot copy out of meta tensor; no data!", lambda t: t.ones(2, device="meta").cpu()),
    ("Cannot copy out of meta tensor; no data!", lambda t: t.ones(2, device="meta").tolist()),
    ("Cannot copy out of meta tensor; no data!", lambda t: t.ones(2).copy_(t.ones(2, device="meta"))),
    ("Cannot copy out of meta tensor; no data!", lambda t: t.nn.Linear(2, 2, device="meta").to("cpu")),
    ("Cannot copy out of meta tensor; no data!", lambda t: t.UntypedStorage(4, device="meta").cpu()),
    ("Tensor.item() cannot be called on meta tensors", lambda t: t.ones((), device="meta").item()),
    ("Tensor.item() cannot be called on meta tensors", lambda t: bool(t.ones(1, device="meta"))),
    *[
        ("Not available for 'meta' device type", lambda t, read=read, storage=storage: read(storage(t)))
        for storage in (
            lambda t: t.UntypedStorage(4, device="meta"),
            lambda t: t.TypedStorage([1, 2], dtype=t.float32, device="meta"),
            lambda t: t.ones(2, device="meta").untyped_storage(),
        )
        for read in (lambda s: s[0], lambda s: s[0:1], lambda s: s.tolist(), list)
    ],
    # --- attributes, storages, ranges ---
    ("assigned grad expected to be a Tensor or None but got grad of type int", lambda t: set_(t, "grad", 3)),
    ("must be floating point or complex dtype", lambda t: set_(t, "data", t.ones(2, dtype=t.int64), requires_grad=True)),
    ("incompatible tensor type", lambda t: set_(t, "data", t.ones(2, 2).to_sparse())),
    ("Expected a Storage of type ", lambda t: t.ones(1).set_(t.ones(3, dtype=t.float64).storage())),
    ("torch.linspace(): inferred dtype", lambda t: t.linspace(0, 1j, 5, dtype=t.float32)),
    ("torch.logspace(): inferred dtype", lambda t: t.logspace(0, 1j, 5, dtype=t.float32)),
    ("Expected both inputs to be Half, Float or Double tensors but got Long and Long",
     lambda t: t.complex(t.tensor([1]), t.tensor([1]))),
    ("Expected both inputs to be Half, Float or Double tensors but got Bool and Bool",
     lambda t: t.polar(t.tensor([True]), t.tensor([True]))),
    ("Expected object of scalar type Float but got scalar type Double for second argument",
     lambda t: t.complex(t.ones(1), t.ones(1, dtype=t.float64))),
    ("diff expects the shape of tensor to prepend or append to match that of input except along the differencing dimension; input.size(0) = 2, but got tensor.size(0) = 3",
     lambda t: t.diff(t.ones(2, 2), prepend=t.ones(3, 2))),
    ("tensor_split expected tensor_indices_or_sections to have dtype of long, but got Float",
     lambda t: t.tensor_split(t.ones(3), t.tensor(1.0))),
    # --- derivatives ---
    ("If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension.",
     lambda t: t.autograd.grad((w := t.ones(2, 2, requires_grad=True)) * 2, w, t.ones(2), is_grads_batched=True)),
    ("Output 0 of the user-provided function is independent of input 0.", lambda t: derivatives(t, "jacobian", constant(t), t.ones(2))),
    ("The output of the user-provided function is independent of input 0.", lambda t: derivatives(t, "vjp", constant(t), t.ones(2), t.ones(()))),
    ("The output of the user-provided function is independent of input 0.", lambda t: derivatives(t, "jvp", constant(t), t.ones(2), t.ones(2))),
    ("The output of the user-provided function is independent of input 0.", lambda t: derivatives(t, "vhp", constant(t), t.ones(2), t.ones(2))),
    ("The output of the user-provided function is independent of input 0.", lambda t: derivatives(t, "hvp", constant(t), t.ones(2), t.ones(2))),
    ("While computing the hessian, found that the jacobian", lambda t: derivatives(t, "hessian", constant(t), t.ones(2))),
    ("While computing the hessian, found that the jacobian", lambda t: derivatives(t, "vhp", lambda x: x.sum(), t.ones(2), t.ones(2))),
    ("While computing the hessian, found that the jacobian", lambda t: derivatives(t, "hvp", lambda x: x.sum(), t.ones(2), t.ones(2))),
    ("The jacobian of the user-provided function is independent of input 0.",
     lambda t: derivatives(t, "jacobian", lambda x: x * 2, t.ones(2), create_graph=True)),
    ("has a forward gradient at the same level", lambda t: dual_of_dual(t)),
    # --- parametrizations ---
    ("Registering a parametrization may not change the dtype of the tensor, unless `unsafe` flag is enabled",
     lambda t: parametrized(t, lambda x: x.bool())),
    ("Registering a parametrization may not change the shape of the tensor, unless `unsafe` flag is enabled",
     lambda t: parametrized(t, lambda x: x[:1])),
    ("The module passed to `WeightNorm` can't have uninitialized parameters", lambda t: t.nn.utils.weight_norm(t.nn.LazyLinear(3))),
    ("The module passed to `SpectralNorm` can't have uninitialized parameters", lambda t: t.nn.utils.spectral_norm(t.nn.LazyLinear(3))),
    # --- products ---
    ("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", lambda t: t.ones(2, 3) @ t.ones(4, 5)),
    ("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", lambda t: t.mm(t.ones(2, 3), t.ones(4, 5))),
    ("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)", lambda t: t.nn.Linear(4, 5)(t.ones(2, 3))),
    ("mat1 and mat2 shapes cannot be multiplied", lambda t: t.addmm(t.ones(1), t.ones(2, 3), t.ones(4, 5))),
    ("size mismatch, got input (2), mat (2x3), vec (4)", lambda t: t.ones(2, 3) @ t.ones(4)),
    ("inconsistent tensor size, expected tensor [2] and src [3]", lambda t: t.dot(t.ones(2), t.ones(3))),
    ("batch1 must be a 3D tensor", lambda t: t.bmm(t.ones(2, 3), t.ones(2, 3))),
    ("Expected size for first two dimensions of batch2 tensor to be: [2, 4] but got: [2, 5].",
     lambda t: t.bmm(t.ones(2, 3, 4), t.ones(2, 5, 6))),
    ("both arguments to matmul need to be at least 1D, but they are 0D and 1D",
     lambda t: t.matmul(t.tensor(1.0), t.ones(1))),
    ("expected m1 and m2 to have the same dtype", lambda t: t.ones(2, 2) @ t.ones(2, 2).double()),
    ("1D tensors expected, but got 2D and 1D tensors", lambda t: t.dot(t.ones(2, 2), t.ones(2))),
    ("self must be a matrix", lambda t: t.mm(t.ones(2), t.ones(2, 2))),
    ("mat2 must be a matrix", lambda t: t.mm(t.ones(2, 2), t.ones(2))),
    ("does not broadcast with previously seen size", lambda t: t.einsum("ij,jk", t.ones(2, 3), t.ones(4, 5))),
    # --- shapes ---
    ("The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
     lambda t: t.ones(3) + t.ones(4)),
    ("The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 1",
     lambda t: t.where(t.ones(2, 3) > 0, t.ones(2, 4), 0.0)),
    ("output with shape [3] doesn't match the broadcast shape [2, 3]", lambda t: t.ones(3).add_(t.ones(2, 3))),
    ("shape '[4, 2]' is invalid for input of size 6", lambda t: t.ones(6).view(4, 2)),
    ("shape '[4, 2]' is invalid for input of size 6", lambda t: t.ones(6).reshape(4, 2)),
    ("shape '[-1, 4]' is invalid for input of size 6", lambda t: t.ones(6).reshape(-1, 4)),
    ("only one dimension can be inferred", lambda t: t.ones(6).reshape(-1, -1)),
    ("cannot reshape tensor of 0 elements into shape [0, -1]", lambda t: t.ones(0).reshape(0, -1)),
    ("view size is not compatible with input tensor's size and stride", lambda t: t.ones(2, 3).t().view(6)),
    ("The expanded size of the tensor (4) must match the existing size (3) at non-singleton dimension 0",
     lambda t: t.ones(3).expand(4)),
    ("the number of sizes provided", lambda t: t.ones(2, 3).expand(3)),
    ("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
     lambda t: t.ones(2, 3).repeat(2)),
    ("Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tensor number 1 in the list.",
     lambda t: t.cat([t.ones(2, 3), t.ones(2, 4)])),
    ("Tensors must have same number of dimensions: got 2 and 1", lambda t: t.cat([t.ones(2, 3), t.ones(3)])),
    ("stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
     lambda t: t.stack([t.ones(2), t.ones(3)])),
    ("stack expects a non-empty TensorList", lambda t: t.stack([])),
    ("expected a non-empty list of Tensors", lambda t: t.cat([])),
    ("zero-dimensional tensor (at position 0) cannot be concatenated", lambda t: t.cat([t.tensor(1.0), t.ones(1)])),
    ("split_with_sizes expects split_sizes to sum exactly to 5", lambda t: t.ones(5).split([2, 2])),
    ("chunk expects `chunks` to be greater than 0, got: 0", lambda t: t.ones(5).chunk(0)),
    ("number of dimensions in the tensor input does not match the length of the desired ordering of dimensions",
     lambda t: t.ones(2, 3).permute(0)),
    ("permute(): duplicate dims are not allowed.", lambda t: t.ones(2, 3).permute(0, 0)),
    ("Dimension out of range (expected to be in range of [-1, 0], but got 1)", lambda t: t.ones(2).sum(1)),
    ("Dimension out of range (expected to be in range of [-2, 1], but got 2)", lambda t: t.ones(2, 2).softmax(2)),
    ("Dimension out of range (expected to be in range of [-1, 0], but got -3)", lambda t: t.ones(2).transpose(0, -3)),
    ("Dimension out of range (expected to be in range of [-2, 1], but got 3)", lambda t: t.ones(2).unsqueeze(3)),
    ("t() expects a tensor with <= 2 dimensions, but self is 3D", lambda t: t.ones(1, 1, 1).t()),
    ("dim 0 appears multiple times in the list of dims", lambda t: t.ones(2).sum((0, 0))),
    ("start (1) + length (3) exceeds dimension size (2).", lambda t: t.ones(2).narrow(0, 1, 3)),
    ("setStorage: sizes [4], strides [2], storage offset 0", lambda t: t.ones(2).as_strided((4,), (2,))),
    ("unflatten: Provided sizes [2, 2] don't multiply up to the size of dim 0 (6)", lambda t: t.ones(6).unflatten(0, (2, 2))),
    ("maximum size for tensor at dimension 0 is 2 but size is 3", lambda t: t.ones(2).unfold(0, 3, 1)),
    ("Trying to create tensor with negative dimension -1", lambda t: t.ones(-1)),
    ("upper bound and lower bound inconsistent with step sign", lambda t: t.arange(3, 1)),
    ("step must be nonzero", lambda t: t.arange(1, 3, 0)),
    # --- indices ---
    ("index 5 is out of bounds for dimension 0 with size 3", lambda t: t.ones(3)[5]),
    ("index 5 is out of bounds for dimension 0 with size 3", lambda t: t.ones(3)[t.tensor([5])]),
    ("index -4 is out of bounds for dimension 0 with size 3", lambda t: t.ones(3)[-4]),
    ("too many indices for tensor of dimension 1", lambda t: t.ones(3)[0, 0]),
    ("invalid index of a 0-dim tensor. Use `tensor.item()` in Python", lambda t: t.tensor(1.0)[0]),
    ("shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]",
     lambda t: t.ones(4, 4)[t.tensor([0, 1]), t.tensor([0, 1, 2])]),
    ("The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3] at index 0",
     lambda t: t.ones(3)[t.tensor([True, False])]),
    ("tensors used as indices must be long, int, byte or bool tensors", lambda t: t.ones(3)[t.tensor([1.0])]),
    ("step must be greater than zero", lambda t: t.ones(3)[::-1]),
    ("shape mismatch: value tensor of shape [3] cannot be broadcast to indexing result of shape [2]",
     lambda t: t.ones(4).index_put_((t.tensor([0, 1]),), t.ones(3))),
    ("index 5 is out of bounds for dimension 0 with size 3", lambda t: t.ones(3).gather(0, t.tensor([5]))),
    ("index 5 is out of bounds for dimension 0 with size 3",
     lambda t: t.ones(3).scatter_(0, t.tensor([5]), t.ones(1))),
    ("index out of range in self", lambda t: t.nn.Embedding(3, 2)(t.tensor([5]))),
    ("select(): index 3 out of range for tensor of size [3] at dimension 0", lambda t: t.ones(3).select(0, 3)),
    ("Index tensor must have the same number of dimensions as input tensor",
     lambda t: t.ones(2, 2).gather(0, t.tensor([0]))),
    ("masked_fill_ only supports boolean masks", lambda t: t.ones(2).masked_fill_(t.ones(2), 0)),
    ("selected index k out of range", lambda t: t.ones(3).topk(4)),
    ("a Tensor with 2 elements cannot be converted to Scalar", lambda t: t.ones(2).item()),
    ("Boolean value of Tensor with more than one value is ambiguous", lambda t: bool(t.ones(2))),
    ("Boolean value of Tensor with no values is ambiguous", lambda t: bool(t.ones(0))),
    ("only one element tensors can be converted to Python scalars", lambda t: float(t.ones(2))),
    ("only integer tensors of a single element can be converted to an index", lambda t: [1][t.ones(1)]),
    ("len() of a 0-d tensor", lambda t: len(t.tensor(1.0))),
    ("iteration over a 0-d tensor", lambda t: list(t.tensor(1.0))),
    # --- dtypes ---
    ("result type Float can't be cast to the desired output type", lambda t: t.ones(2, dtype=t.int64).add_(1.5)),
    ("result type ComplexFloat can't be cast", lambda t: t.ones(2).add_(1j)),
    ("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long",
     lambda t: t.ones(2, dtype=t.int64).mean()),
    *[("Only Tensors of floating point and complex dtype can require gradients", call) for call in (
        lambda t: t.ones(2, dtype=t.int64, requires_grad=True),
        lambda t: t.tensor([1], requires_grad=True),
        lambda t: t.arange(3, requires_grad=True),
        lambda t: t.ones(2).new_zeros(2, dtype=t.int64, requires_grad=True),
    )],
    *[("Expected object of scalar type ComplexFloat but got scalar type Float for argument 'out'", call) for call in (
        lambda t: t.complex(t.ones(2), t.ones(2), out=t.ones(2)),
        lambda t: t.polar(t.ones(2), t.ones(2), out=t.ones(2)),
    )],
    *[("rfftn expects a real-valued input tensor, but got ", call) for call in (
        lambda t: t.fft.rfftn(t.ones(2, 2, dtype=t.complex64)),
        lambda t: t.fft.rfft2(t.ones(2, 2, dtype=t.complex64)),
    )],
    ("stft requires the return_complex parameter be given for real inputs",
     lambda t: t.stft(t.ones(8), 4, window=t.ones(4))),
    ("istft requires a complex-valued input tensor matching the output from stft with return_complex=True",
     lambda t: t.istft(t.ones(3, 4, 2), 4, window=t.ones(4))),
    ("meshgrid expects all tensors to have the same device",
     lambda t: t.meshgrid(t.ones(2), t.ones(2, device="meta"), indexing="ij")),
    ("only Tensors of floating point dtype can require gradients",
     lambda t: t.ones(2, dtype=t.int64).requires_grad_()),
    ("value cannot be converted to type uint8_t without overflow", lambda t: t.ones(2, dtype=t.uint8).fill_(300)),
    ("Subtraction, the `-` operator, with two bool tensors is not supported",
     lambda t: t.tensor([True]) - t.tensor([True])),
    ("Negation, the `-` operator, on a bool tensor is not supported", lambda t: -t.tensor([True])),
    ("Integers to negative integer powers are not allowed.", lambda t: t.tensor([2]) ** -1),
    ("expected target dtype to be Long", lambda t: F(t).nll_loss(t.ones(2, 3), t.ones(2))),
    ("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
     lambda t: t.ones(1, requires_grad=True).numpy()),
    ("can't convert np.ndarray of type numpy.object_", lambda t: t.tensor(__import__("numpy").array([None]))),
    ("expected sequence of length 2 at dim 1 (got 1)", lambda t: t.tensor([[1, 2], [3]])),
    ("too many dimensions 'str'", lambda t: t.tensor(["a"])),
    ("new(): invalid data type 'str'", lambda t: t.tensor("a")),
    ("Could not infer dtype of NoneType", lambda t: t.tensor(None)),
    # --- autograd ---
    ("element 0 of tensors does not require grad and does not have a grad_fn", lambda t: t.ones(1).sum().backward()),
    ("grad can be implicitly created only for scalar outputs", lambda t: t.ones(2, requires_grad=True).exp().backward()),
    ("Trying to backward through the graph a second time", backward_twice),
    ("one of the variables needed for gradient computation has been modified by an inplace operation", modified),
    ("a leaf Variable that requires grad is being used in an in-place operation",
     lambda t: t.ones(1, requires_grad=True).add_(1)),
    ("a view of a leaf Variable that requires grad is being used in an in-place operation", view_written),
    ("is a view and is being modified inplace. This view is the output of a function that returns", unbound_written),
    ("appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.",
     lambda t: t.autograd.grad(t.ones(1, requires_grad=True).sum(), t.ones(1, requires_grad=True))),
    ("Mismatch in shape: grad_output[0] has a shape of", lambda t: t.ones(2, requires_grad=True).exp().backward(t.ones(3))),
    ("you can only change requires_grad flags of leaf variables",
     lambda t: setattr(t.ones(1, requires_grad=True) * 1, "requires_grad", False)),
    ("cannot register a hook on a tensor that doesn't require gradient", lambda t: t.ones(1).register_hook(abs)),
    ("can't retain_grad on Tensor that has requires_grad=False", lambda t: t.ones(1).retain_grad()),
    ("Inference tensors cannot be saved for backward", inference_saved),
    ("Inplace update to inference tensor outside InferenceMode is not allowed", inference_written),
    ("attempting to assign a gradient of size '[2]' to a tensor of size '[1]'", lambda t: setattr(t.ones(1, requires_grad=True), "grad", t.ones(2))),
    ("Only Tensors created explicitly by the user", lambda t: __import__("copy").deepcopy(t.ones(1, requires_grad=True) * 1)),
    ("can't optimize a non-leaf Tensor", lambda t: t.optim.SGD([t.ones(1, requires_grad=True) * 1], lr=1.0)),
    # --- losses ---
    ("Target 5 is out of bounds.", lambda t: F(t).cross_entropy(t.ones(2, 3), t.tensor([0, 5]))),
    ("Target 5 is out of bounds.", lambda t: F(t).nll_loss(t.ones(2, 3), t.tensor([0, 5]))),
    ("Expected input batch_size (3) to match target batch_size (4).",
     lambda t: F(t).cross_entropy(t.ones(3, 2), t.tensor([0, 1, 0, 1]))),
    ("that is different to the input size", lambda t: F(t).binary_cross_entropy(t.ones(2), t.ones(3))),
    ("Target size (", lambda t: F(t).binary_cross_entropy_with_logits(t.ones(2), t.ones(3))),
    ("all elements of input should be between 0 and 1", lambda t: F(t).binary_cross_entropy(t.ones(2) * 2, t.ones(2))),
    ("all elements of target should be between 0 and 1", lambda t: F(t).binary_cross_entropy(t.ones(2), t.ones(2) * 2)),
    ("abc is not a valid value for reduction", lambda t: F(t).mse_loss(t.ones(2), t.ones(2), reduction="abc")),
    ("abc is not a valid value for reduction", lambda t: F(t).huber_loss(t.ones(2), t.ones(2), reduction="abc")),
    ("abc is not a valid value for reduction", lambda t: F(t).soft_margin_loss(t.ones(2), t.ones(2), reduction="abc")),
    ("The size of tensor a (2) must match the size of tensor b (3)", lambda t: F(t).l1_loss(t.ones(2), t.ones(3))),
    # --- layers ---
    ("Expected more than 1 value per channel when training, got input size", lambda t: t.nn.BatchNorm1d(3)(t.ones(1, 3))),
    ("Expected more than 1 spatial element when training, got input size", lambda t: t.nn.InstanceNorm1d(3)(t.ones(2, 3, 1))),
    ("expected 4D input (got 3D input)", lambda t: t.nn.BatchNorm2d(3)(t.ones(1, 3, 3))),
    ("running_mean should contain 2 elements not 3", lambda t: t.nn.BatchNorm1d(3)(t.ones(4, 2))),
    ("Given normalized_shape=[3], expected input with shape [*, 3], but got input of size[2, 4]",
     lambda t: t.nn.LayerNorm(3)(t.ones(2, 4))),
    ("Expected number of channels in input to be divisible by num_groups", lambda t: F(t).group_norm(t.ones(2, 3), 2)),
    ("must be divisible by num_groups", lambda t: t.nn.GroupNorm(2, 3)),
    ("Given groups=1, weight of size [4, 3, 1, 1], expected input[1, 2, 5, 5] to have 3 channels, but got 2 channels instead",
     lambda t: t.nn.Conv2d(3, 4, 1)(t.ones(1, 2, 5, 5))),
    ("Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [5, 5]",
     lambda t: t.nn.Conv2d(3, 4, 1)(t.ones(5, 5))),
    ("Kernel size can't be greater than actual input size", lambda t: t.nn.Conv2d(1, 1, 3)(t.ones(1, 1, 2, 2))),
    ("Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3).", lambda t: t.nn.Conv2d(1, 1, 3)(t.ones(1, 1, 2, 2))),
    ("in_channels must be divisible by groups", lambda t: t.nn.Conv2d(3, 4, 1, groups=2)),
    ("out_channels must be divisible by groups", lambda t: t.nn.Conv2d(4, 3, 1, groups=2)),
    ("non-positive stride is not supported", lambda t: F(t).conv1d(t.ones(1, 1, 4), t.ones(1, 1, 2), stride=0)),
    ("negative padding is not supported", lambda t: F(t).conv1d(t.ones(1, 1, 4), t.ones(1, 1, 2), padding=-1)),
    ("dilation should be greater than zero", lambda t: F(t).conv1d(t.ones(1, 1, 4), t.ones(1, 1, 2), dilation=0)),
    ("padding='same' is not supported for strided convolutions", lambda t: t.nn.Conv2d(1, 1, 3, 2, padding="same")),
    ("Output size is too small", lambda t: F(t).max_pool2d(t.ones(1, 1, 2, 2), 3)),
    ("Output size is too small", lambda t: F(t).avg_pool2d(t.ones(1, 1, 2, 2), 3)),
    ("pad should be at most half of effective kernel size", lambda t: F(t).max_pool2d(t.ones(1, 1, 4, 4), 2, padding=2)),
    ("Padding size should be less than the corresponding input dimension", lambda t: F(t).pad(t.ones(1, 2, 2), (2, 2), mode="reflect")),
    ("dropout probability has to be between 0 and 1, but got 2", lambda t: t.nn.Dropout(2)),
    ("dropout probability has to be between 0 and 1, but got 2", lambda t: F(t).dropout(t.ones(2), 2)),
    ("embed_dim must be divisible by num_heads", lambda t: t.nn.MultiheadAttention(5, 2)),
    ("input.size(-1) must be equal to input_size. Expected 3, got 4", lambda t: t.nn.LSTM(3, 5)(t.ones(2, 1, 4))),
    ("Expected hidden size (1, 2, 5), got [1, 3, 5]", lambda t: t.nn.RNN(3, 5)(t.ones(4, 2, 3), t.ones(1, 3, 5))),
    ("hidden0 has inconsistent hidden_size: got 6, expected 5", lambda t: t.nn.RNNCell(3, 5)(t.ones(2, 3), t.ones(2, 6))),
    ("Input batch size 2 doesn't match hidden0 batch size 3", lambda t: t.nn.GRUCell(3, 5)(t.ones(2, 3), t.ones(3, 5))),
    ("input has inconsistent input_size: got 4 expected 3", lambda t: t.nn.LSTMCell(3, 5)(t.ones(2, 4))),
    ("Padding_idx must be within num_embeddings", lambda t: t.nn.Embedding(3, 2, padding_idx=5)),
    ("Missing key(s) in state_dict: \"bias\".", lambda t: loaded(t, weight=(3, 2))),
    ("Unexpected key(s) in state_dict: \"extra\".", lambda t: loaded(t, weight=(3, 2), bias=(3,), extra=(1,))),
    ("size mismatch for bias: copying a param with shape", lambda t: loaded(t, weight=(3, 2), bias=(4,))),
    ("Error(s) in loading state_dict for Linear:", lambda t: loaded(t)),
    ("object has no attribute 'nothing'", lambda t: t.nn.Linear(1, 1).nothing),
    ("as parameter 'weight'", lambda t: setattr(t.nn.Linear(1, 1), "weight", "a")),
    ("cannot assign module before Module.__init__() call", lambda t: setattr(t.nn.Module.__new__(t.nn.Module), "a", t.nn.Identity())),
    ("is not a Module subclass", lambda t: t.nn.Sequential(1)),
    ("index 3 is out of range", lambda t: t.nn.ModuleList([t.nn.Identity()])[3]),
    # --- optimizers, data ---
    ("optimizer got an empty parameter list", lambda t: t.optim.SGD([], lr=1.0)),
    ("Invalid learning rate: -1", lambda t: one_optimizer(t, lr=-1)),
    ("Invalid momentum value: -1", lambda t: one_optimizer(t, lr=1.0, momentum=-1)),
    ("Nesterov momentum requires a momentum and zero dampening", lambda t: one_optimizer(t, lr=1.0, nesterov=True)),
    ("Invalid beta parameter at index 0: 2", lambda t: t.optim.Adam([t.ones(1, requires_grad=True)], betas=(2, 0))),
    ("optimizer can only optimize Tensors, but one of the params is int", lambda t: t.optim.SGD([1], lr=1.0)),
    ("batch_size should be a positive integer value, but got batch_size=0", lambda t: t.utils.data.DataLoader([1], batch_size=0)),
    ("sampler option is mutually exclusive with shuffle", lambda t: t.utils.data.DataLoader([1], sampler=[0], shuffle=True)),
    ("num_samples should be a positive integer value, but got num_samples=0", lambda t: t.utils.data.RandomSampler([])),
    ("Size mismatch between tensors", lambda t: t.utils.data.TensorDataset(t.ones(2), t.ones(3))),
    ("Sum of input lengths does not equal the length of the input dataset!",
     lambda t: t.utils.data.random_split([1, 2], [3])),
    # --- linear algebra and others ---
    ("must be batches of square matrices", lambda t: t.linalg.inv(t.ones(2, 3))),
    ("The diagonal element 1 is zero, the inversion could not be completed because the input matrix is singular.",
     lambda t: t.linalg.inv(t.zeros(2, 2))),
    ("the input is not positive-definite", lambda t: t.linalg.cholesky(-t.eye(2))),
    ("The solver failed because the input matrix is singular", lambda t: t.linalg.solve(t.zeros(2, 2), t.ones(2))),
    ("invalid multinomial distribution (sum of probabilities <= 0)", lambda t: t.multinomial(t.zeros(3), 1)),
    ("cannot sample n_sample > prob_dist.size(-1) samples without replacement", lambda t: t.multinomial(t.ones(3), 4)),
    ("normal expects std >= 0.0, but found std -1", lambda t: t.normal(0.0, -1.0, (2,))),
    ("random_ expects 'from' to be less than 'to', but got from=3 >= to=1", lambda t: t.randint(3, 1, (2,))),
    ("Class values must be smaller than num_classes.", lambda t: F(t).one_hot(t.tensor([5]), 3)),
    ("multinomial only supports floating-point dtypes for input", lambda t: t.multinomial(t.ones(3, dtype=t.int64), 1)),
    ("cauchy_ expects sigma > 0.0, but found sigma=-2", lambda t: t.ones(2).cauchy_(0, -2)),
    ("exponential_ expects lambda > 0.0, but found lambda=0", lambda t: t.ones(2).exponential_(0)),
    ("geometric_ expects p to be in (0, 1), but got p=-1", lambda t: t.ones(2).geometric_(-1)),
    ("log_normal_ expects std > 0.0, but found std=-0.5", lambda t: t.ones(2).log_normal_(0, -0.5)),
    ("uniform_ expects to return a [from, to) range, but found from=1 > to=0", lambda t: t.ones(2).uniform_(1, 0)),
    ("movedim: repeated dim in `source` ([0, -2])", lambda t: t.ones(2, 2).movedim((0, -2), (0, 1))),
    ("histogramdd: The size of bins must be equal to the innermost dimension of the input",
     lambda t: t.histogramdd(t.ones(5, 6), (1, 1))),
    ("inputs dimension -1 must have length 3", lambda t: t.linalg.cross(t.ones(5, 3), t.ones(5, 1))),
    ("use the `~` or `logical_not()` operator instead.", lambda t: -t.tensor([True])),
    ("rtol must be greater than or equal to zero", lambda t: t.isclose(t.ones(1), t.ones(1), rtol=-0.4)),
    ("atol must be greater than or equal to zero", lambda t: t.isclose(t.ones(1), t.ones(1), atol=-0.4)),
    ("only supports a 0-dimensional value tensor, but got tensor with 1 dimension",
     lambda t: t.ones(2).masked_fill(t.tensor([True, False]), t.ones(1))),
    ("narrow(): length must be non-negative.", lambda t: t.ones(2).narrow(0, 0, -1)),
    ("min_val cannot be greater than max_val", lambda t: F(t).hardtanh(t.ones(1), 0.5, -0.5)),
    ("Expected weight to be of same shape as normalized_shape", lambda t: F(t).layer_norm(t.ones(2, 3), (3,), t.ones(2))),
    ("Expected weight to be of same shape as normalized_shape", lambda t: F(t).rms_norm(t.ones(2, 3), (3,), t.ones(2))),
    ("Index tensor must have the same number of dimensions as self tensor",
     lambda t: t.ones(2, 2).scatter(0, t.tensor([0]), 1.0)),
    ("Index tensor must have the same number of dimensions as self tensor",
     lambda t: t.ones(2, 2).scatter_add(0, t.tensor([0]), t.ones(1))),
    ("Index tensor must have the same number of dimensions as self tensor",
     lambda t: t.ones(2, 2).scatter_reduce(0, t.tensor([0]), t.ones(1), "sum")),
    ("['weight'] appeared in multiple dictionaries",
     lambda t: t.func.functional_call(t.nn.Linear(1, 1), ({"weight": t.ones(1, 1)},) * 2, t.ones(1))),
    ("attribute `in_features`: 1 is not an instance of torch.Tensor",
     lambda t: t.func.functional_call(t.nn.Linear(1, 1), {"in_features": t.ones(1)}, t.ones(1))),
    ("`0 <= col_indices < ncols` is not satisfied",
     lambda t: t.sparse_csr_tensor([0, 1], [5], [1.0], (1, 2), check_invariants=True)),
    ("`crow_indices[..., 0] == 0` is not satisfied",
     lambda t: t.sparse_csr_tensor([1, 1], [0], [1.0], (1, 2), check_invariants=True)),
    ("`crow_indices[..., -1] == nnz` is not satisfied",
     lambda t: t.sparse_csr_tensor([0, 2], [0], [1.0], (1, 2), check_invariants=True)),
    ("for all i = 1, ..., nrows are sorted and distinct along the last dimension values` is not satisfied",
     lambda t: t.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2), check_invariants=True)),
    ("cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor",
     lambda t: t.sparse_coo_tensor([[1, 1]], [1.0, 2.0], (2,), is_coalesced=True, check_invariants=True)),
    ("masked amax expects explicit mask for sparse_coo tensor input",
     lambda t: __import__(f"{t.__name__}.masked").masked.amax(t.eye(2).to_sparse())),
    ("In-place abs is not supported for complex tensors", lambda t: t.ones(2, dtype=t.complex64).to_sparse().abs_()),
    ("output with shape [1] doesn't match the broadcast shape [2, 1]", lambda t: t.zeros(1).copy_(t.ones(2, 1))),
    ("source tensor shape must match self tensor shape, excluding the specified dimension",
     lambda t: t.ones(()).index_add(0, t.tensor([0]), t.ones(1, 1, 1))),
    ("source tensor shape must match self tensor shape, excluding the specified dimension",
     lambda t: t.ones(2, 3).index_add(1, t.tensor([0]), t.ones(3, 1))),
    *[
        (f"expected scalar_type {wanted} but found {given}",
         lambda t, name=name, out=out: getattr(t, name)(t.ones(3), 0, out=out(t)))
        for name, wanted, given, out in (
            ("cummax", "Float", "Short", lambda t: (t.ones(3, dtype=t.int16), t.ones(3, dtype=t.int64))),
            ("cummin", "Long", "Float", lambda t: (t.ones(3), t.ones(3))),
            ("logcumsumexp", "Float", "Double", lambda t: t.ones(3, dtype=t.float64)),
        )
    ],
    ("got numpy.ndarray", lambda t: t.stack([t.ones(1), np.ones(1)])),
    ("got numpy.ndarray", lambda t: t.cat([t.ones(1), np.ones(1)])),
    ("got datetime.date", lambda t: t.cat([t.ones(1), dt.date(2000, 1, 1)])),
    ("got Fraction", lambda t: t.cat([t.ones(1), fractions.Fraction(1)])),
    ("must be Tensor, not numpy.ndarray", lambda t: t.sin(np.ones(1))),
    ("must be Tensor, not numpy.ndarray", lambda t: t.mm(t.ones(1, 1), np.ones((1, 1)))),
    ("must be bool, not numpy.ndarray", lambda t: t.sum(t.ones(1), 0, keepdim=np.ones(2))),
    ("Device index must not be negative", lambda t: t.device(-1)),
    ("Device index must not be negative", lambda t: t.device("cpu", -1)),
    ("Device string must not be empty", lambda t: t.device("")),
    ("argument 'index' (position 2) must be int, not str", lambda t: t.device("cpu", "cpu")),
    ("type (string) must not include an index because index was passed explicitly", lambda t: t.device("cpu:0", 0)),
    ("Expected parameter", lambda t: t.distributions.Normal(t.ones(1), -t.ones(1))),
    ("to be within the support (Boolean()) of the distribution Bernoulli(probs: 0.5)", lambda t: t.distributions.Bernoulli(0.5).log_prob(t.tensor(3.0))),
]  # fmt: skip


def error_of(call, module):
    try:
        call(module)
    except Exception as error:
        return error
    return None


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
