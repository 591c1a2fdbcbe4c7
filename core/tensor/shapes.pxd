cpdef object infer_size(object shape, object numel, object name)
cpdef object normalize_dim(object dim, object ndim, object name=*)
