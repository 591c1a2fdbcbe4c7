from tensorplug.core.tensor.base cimport bump_version, new_tensor, version_of
