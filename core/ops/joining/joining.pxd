from tensorplug.core.ops.shape.shape cimport reshaped
from tensorplug.core.shapes cimport normalize_dim
