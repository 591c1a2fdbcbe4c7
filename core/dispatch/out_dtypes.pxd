from .keys cimport DispatchKey

cpdef object check_out(str name, object target, object dtype, DispatchKey key, object error=*)
