from tensorplug.autograd.graph.views cimport edge_of
from tensorplug.core.tensor.base cimport new_tensor, version_of
