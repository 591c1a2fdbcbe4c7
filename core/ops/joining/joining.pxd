from tensorplug.core.ops.shape.shape cimport reshaped
from tensorplug.core.tensor.shapes cimport normalize_dim
