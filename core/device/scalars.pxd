# Compiled as it is, but for checks at every call.
cpdef object fitting(object value, object dtype)
