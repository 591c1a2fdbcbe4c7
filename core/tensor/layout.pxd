from .base cimport TensorBase

cpdef strides_like(TensorBase input, object memory_format, object name)
