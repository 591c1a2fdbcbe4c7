from tensorplug.core.ops.rules cimport check_tensor
from tensorplug.core.ops.shape.shape cimport permuted
from tensorplug.core.tensor.shapes cimport normalize_dim
