/* New NumPy arrays over blocks of the allocator.

   NumPy asks an array's own handler (NEP 49) to free its memory, so it is enough to hand the array ours; no
   context variable is set, and no other array is touched. */
#ifndef TENSORPLUG_ARRAYS_H
#define TENSORPLUG_ARRAYS_H

#include <Python.h>
#include <numpy/arrayobject.h>
#include <string.h>

#include "allocator.h"

/* The domain under which NumPy tells tracemalloc of its data. */
#define TP_TRACE_DOMAIN 389047

static void *tp_handler_malloc(void *context, size_t size) { (void)context; return tp_allocate(size); }
static void *tp_handler_calloc(void *context, size_t count, size_t size) {
    (void)context;
    void *block = tp_allocate(count * size);
    return block ? memset(block, 0, count * size) : NULL;
}
static void *tp_handler_realloc(void *context, void *old, size_t size) {
    (void)context;
    void *block = tp_allocate(size);
    if (block && old) {
        const size_t had = tp_block_size(old);
        memcpy(block, old, had < size ? had : size);
        tp_release(old);
    }
    return block;
}
static void tp_handler_free(void *context, void *block, size_t size) {
    (void)context;
    (void)size;
    tp_release(block);
}

static PyDataMem_Handler tp_handler = {
    "tensorplug_cpu_cython", 1,
    {NULL, tp_handler_malloc, tp_handler_calloc, tp_handler_realloc, tp_handler_free}};

/* Return a new array, C-contiguous unless `strides` (in bytes, of a dense layout) are given. Takes no
   reference of `type`. */
static PyObject *tp_new_array(PyArray_Descr *type, int dims, const npy_intp *shape, const npy_intp *strides,
                              PyObject *handler) {
    npy_intp bytes = PyDataType_ELSIZE(type);
    for (int i = 0; i < dims; i++) bytes *= shape[i];
    void *data = tp_allocate(bytes ? (size_t)bytes : 1);
    if (!data) {
        PyErr_Format(PyExc_MemoryError, "cannot allocate %zd bytes", (Py_ssize_t)bytes);
        return NULL;
    }
    Py_INCREF(type);
    PyObject *array = PyArray_NewFromDescr(&PyArray_Type, type, dims, (npy_intp *)shape, (npy_intp *)strides,
                                           data, NPY_ARRAY_DEFAULT, NULL);
    if (!array) {
        tp_release(data);
        return NULL;
    }
    PyTraceMalloc_Track(TP_TRACE_DOMAIN, (uintptr_t)data, (size_t)bytes);
    Py_INCREF(handler);
    ((PyArrayObject_fields *)array)->mem_handler = handler;
    PyArray_ENABLEFLAGS((PyArrayObject *)array, NPY_ARRAY_OWNDATA);
    return array;
}

#endif
