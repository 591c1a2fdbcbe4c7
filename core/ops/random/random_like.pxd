from tensorplug.core.device.generator cimport chosen_generator
from tensorplug.core.dispatch.keys cimport dispatch_key
from tensorplug.core.ops.creation.creation_like cimport made_like
from tensorplug.core.ops.random.random cimport floating, fresh, integers_between
