# What the op calls at every call.
from tensorplug.core.device.generator cimport chosen_generator
from tensorplug.core.dispatch.keys cimport dispatch_key
from tensorplug.core.dispatch.op cimport Op
from tensorplug.core.ops.creation.creation cimport made, options
from tensorplug.core.ops.random.numbers cimport by_kernel
from tensorplug.core.ops.random.random cimport whole
