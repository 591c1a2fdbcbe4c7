from .gradient_layer cimport GradientLayer


cdef class DispatchState:
    cdef public int grad_disabled, inference, layers_active, planning, preferences
    cdef public bint verify
    cdef public GradientLayer gradient
    cdef public object log_choice, kernel_timer, transfer_timer
    cdef public object through_layers, takes_over, gradient_off, native_kernel, preferred_kernel, make_stub
    cdef public object build_call, build_inplace, add_method, remove_method, beside_array, get_item, set_item
    cdef public object find_runtime, find_missing, find_extensions, array_namespace
    cdef public object call_batched, spec_batched, call_dual, spec_dual
