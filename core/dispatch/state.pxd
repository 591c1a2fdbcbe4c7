from .gradient_layer cimport GradientLayer


cdef class DispatchState:
    cdef public int grad_disabled, layers_active, preferences
    cdef public bint verify
    cdef public GradientLayer gradient
    cdef public object through_layers, gradient_off, native_kernel, preferred_kernel
