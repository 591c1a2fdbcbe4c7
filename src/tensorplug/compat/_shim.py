
from tensorplug.core.dispatch import op_registry
class Library:
    def __init__(self, ns, kind, key=""): self.ns=ns
    def impl(self, name, fn=None, key=""): return None
    def define(self, *a, **k): return None
def register_fake(op, func=None, *, lib=None, allow_override=False):
    if func is None: return lambda f: f
    return func
def register_autograd(op, backward, *, setup_context=None, lib=None): return None
def custom_op(name, fn=None, *, mutates_args, device_types=None, schema=None):
    if fn is None: return lambda f: f
    return fn
NAMES = dict(Library=Library, register_fake=register_fake, register_autograd=register_autograd, custom_op=custom_op)
from tensorplug.compat import torchvision as _tv
for _op in _tv.plugin.tensorplug_ops():
    _op.default = _op
import tensorplug as _tp
from tensorplug.compat import additions as _a
def _float8():
    _a.ADDITIONS["torch"] |= {n: _tp.float16 for n in ("float8_e4m3fn","float8_e5m2","float8_e8m0fnu","float8_e4m3fnuz","float8_e5m2fnuz")}
