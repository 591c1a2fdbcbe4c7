cimport cython

from ..dispatch.keys cimport DispatchKey


cdef extern from *:
    """
    /* The tp_new of the class that has the slots, for any class below it: their __new__ is not called. */
    #if defined(CYTHON_VECTORCALL_TPNEW) && CYTHON_VECTORCALL_TPNEW /* since Cython 3.3 */
    #define tensorplug_blank(cls) \
        __pyx_tp_new_vectorcall_10tensorplug_4core_6tensor_4base_TensorBase((PyTypeObject *)(cls), NULL, 0, NULL)
    #else
    #define tensorplug_blank(cls) \
        __pyx_tp_new_10tensorplug_4core_6tensor_4base_TensorBase((PyTypeObject *)(cls), NULL, NULL)
    #endif
    """
    object blank "tensorplug_blank"(object cls)


@cython.freelist(64)
cdef class Storage:
    cdef public Py_ssize_t version
    cdef public object mirror
    cdef object __weakref__


@cython.freelist(64)
cdef class Extra:
    cdef public object grad, name
    cdef public object accumulation_hooks, accumulation_metadata, backward_hooks, post_accumulate_hooks
    cdef public bint retains_grad, inference
    cdef public Py_ssize_t output_nr


cdef class TensorBase:
    cdef public object _array, _shape, _node, _view
    cdef public DispatchKey _key
    cdef public int _state
    cdef public Py_ssize_t _writes
    cdef public Storage _storage
    cdef public Extra _extra


cdef type tensor_class

cpdef bare_tensor(object cls)
cpdef TensorBase unset_tensor()

@cython.locals(tensor=TensorBase)
cpdef TensorBase new_tensor(object array, DispatchKey key, object shape)

cpdef TensorBase wrap(object array, DispatchKey key)

@cython.locals(extra=Extra)
cpdef Extra extra_of(TensorBase tensor)

cpdef Storage storage_of(TensorBase tensor)
cpdef Py_ssize_t version_of(TensorBase tensor)
cpdef bump_version(TensorBase tensor)
