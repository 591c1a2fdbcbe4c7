from .gradient cimport GradientLayer


cdef class Current:
    cdef public int paused, interposed, preferences
    cdef public bint verify
    cdef public GradientLayer gradient
    cdef public object through_layers, gradient_off, native_kernel, preferred_kernel
