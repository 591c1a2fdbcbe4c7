"""Views whose shapes, strides and offsets are known before the arrays are."""

cimport numpy as np

np.import_array()

cdef extern from "c/strided_views.h":
    object tp_view(np.ndarray array, char *data, int dims, const np.npy_intp *, const np.npy_intp *)

cdef enum:
    DIMS = 64


cdef struct view:
    int source, dims
    Py_ssize_t offset
    np.npy_intp shape[DIMS]
    np.npy_intp strides[DIMS]


cdef class Views:
    """Shows arrays in several ways, with one call for all of them.

    Parameters
    ----------
    sources : list of (tuple, tuple)
        Shapes and strides, in bytes, of the arrays that go in.
    views : list of (int, int, tuple, tuple)
        The number of the array that is shown, the offset in bytes, shape and strides.
    """

    cdef list views, sources

    def __init__(self, list sources, list views):
        self.sources = [_described(0, 0, shape, strides) for shape, strides in sources]
        self.views = [_described(source, offset, shape, strides) for source, offset, shape, strides in views]

    def __call__(self, arrays):
        """Return the views; None if an array lies otherwise than expected."""
        cdef list found = []
        cdef bytes known
        cdef const view *v
        cdef np.ndarray source
        cdef int number, d
        for number in range(len(self.sources)):
            source = arrays[number]
            known = self.sources[number]
            v = <const view *> <const char *> known
            if np.PyArray_NDIM(source) != v.dims:
                return None
            for d in range(v.dims):
                if np.PyArray_DIM(source, d) != v.shape[d] or np.PyArray_STRIDE(source, d) != v.strides[d]:
                    return None
        for known in self.views:
            v = <const view *> <const char *> known
            source = arrays[v.source]
            found.append(tp_view(source, <char *> np.PyArray_DATA(source) + v.offset, v.dims, v.shape, v.strides))
        return found


cdef bytes _described(int source, Py_ssize_t offset, tuple shape, tuple strides):
    """Return a view as bytes, which are kept as long as the object."""
    cdef view v
    cdef int d
    if len(shape) > DIMS:
        raise ValueError("too many dimensions")
    v.source, v.offset, v.dims = source, offset, <int> len(shape)
    for d in range(v.dims):
        v.shape[d], v.strides[d] = shape[d], strides[d]
    return (<char *> &v)[:sizeof(view)]
