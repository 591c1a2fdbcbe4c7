/* NumPy arrays that show the memory of others. */
#ifndef TENSORPLUG_STRIDED_VIEWS_H
#define TENSORPLUG_STRIDED_VIEWS_H

#include <Python.h>
#include <numpy/arrayobject.h>

/* Return an array over the memory of another one, at `data`, which may be of another type. */
static PyObject *tp_view_as(PyArrayObject *array, char *data, int dims, const npy_intp *shape,
                            const npy_intp *strides, PyArray_Descr *descriptor) {
    Py_INCREF(descriptor); /* this call and that for the base take the references that they are given */
    PyObject *view = PyArray_NewFromDescr(&PyArray_Type, descriptor, dims, (npy_intp *)shape,
                                          (npy_intp *)strides, data,
                                          PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE, NULL);
    if (!view) return NULL;
    Py_INCREF(array);
    if (PyArray_SetBaseObject((PyArrayObject *)view, (PyObject *)array) < 0) {
        Py_DECREF(view);
        return NULL;
    }
    return view;
}
#define tp_view(array, data, dims, shape, strides)                                                 \
    tp_view_as(array, data, dims, shape, strides, PyArray_DESCR(array))

#endif
