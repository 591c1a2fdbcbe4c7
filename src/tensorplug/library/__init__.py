"""Ops of one's own, registered at run time, as ``torch.library`` has them.

An op of a package is declared with its kernels, over tensors, and works like one that a plugin brings: on
every device type it has a kernel for, recorded, inside of ``vmap``, on "meta", as ``tp.ops.package.op``::

    @tp.library.custom_op("package::sine", mutates_args=())
    def sine(x: tp.Tensor) -> tp.Tensor:
        return tp.from_numpy(numpy.sin(x.numpy(force=True))).to(x.device)


    sine.register_autograd(
        lambda ctx, g: g * ctx.saved_tensors[0].cos(),
        setup_context=lambda ctx, inputs, output: ctx.save_for_backward(inputs[0]),
    )

Kernels over raw arrays, and ops for others to install, belong into a plugin: see ``tensorplug.plugin``.
"""

from __future__ import annotations

from .checks import opcheck
from .custom import CustomOpDef, custom_op
from .registration import (
    Library,
    define,
    fallthrough_kernel,
    get_ctx,
    impl,
    impl_abstract,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
    triton_op,
    wrap_triton,
)
from .schema import FunctionSchema, infer_schema

__all__ = [
    "CustomOpDef",
    "FunctionSchema",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "get_ctx",
    "impl",
    "impl_abstract",
    "infer_schema",
    "opcheck",
    "register_autocast",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "register_torch_dispatch",
    "register_vmap",
    "triton_op",
    "wrap_triton",
]
