cpdef object infer_size(object shape, object numel, object name)
cpdef object normalize_dim(object dim, object ndim, object name=*)
cpdef object as_shape(tuple sizes, object name)
cpdef object check_sizes(object shape, object name)
