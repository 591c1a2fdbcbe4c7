cimport cython
from cpython.object cimport PyObject

from tensorplug.core.tensor.base cimport TensorBase


cdef extern from *:
    """
    /* Python's method cache goes by this number: whatever writes a class or one of its bases takes it away. */
    static CYTHON_INLINE unsigned int tensorplug_version_of_class(PyObject *kind) {
        PyTypeObject *type = (PyTypeObject *)kind;
    #if PY_VERSION_HEX < 0x030C0000
        if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG))
            return 0;
    #endif
        return type->tp_version_tag;
    }
    /* PEP 509: each write of a dictionary gives it a new number, until Python 3.12 at least. */
    static CYTHON_INLINE unsigned long long tensorplug_version_of_dict(PyObject *table) {
    #if PY_VERSION_HEX < 0x030C0000 && !defined(PYPY_VERSION)
        return ((PyDictObject *)table)->ma_version_tag;
    #else
        (void)table;
        return 0;
    #endif
    }
    /* The attributes of a function, which has no dictionary until somebody asks for it. */
    static CYTHON_INLINE PyObject *tensorplug_attributes(PyObject *function) {
        PyObject *table = ((PyFunctionObject *)function)->func_dict;
        return Py_NewRef(table ? table : Py_None);
    }
    static CYTHON_INLINE int tensorplug_is_item(PyObject *value, PyObject *list, Py_ssize_t number) {
        return (value ? value : Py_None) == PyList_GET_ITEM(list, number);
    }
    /* By attribute each takes 30 ns: Python looks a descriptor up, and tells its audit hooks. */
    static int tensorplug_runs_same(
        PyObject *value, Py_ssize_t number, PyObject *code, PyObject *defaults, PyObject *named, PyObject *attributes
    ) {
        PyFunctionObject *function = (PyFunctionObject *)value;
        if (!tensorplug_is_item(function->func_code, code, number)
            || !tensorplug_is_item(function->func_defaults, defaults, number)
            || !tensorplug_is_item(function->func_kwdefaults, named, number))
            return 0;
        PyObject *table = function->func_dict;
        return tensorplug_is_item(table && PyDict_GET_SIZE(table) ? table : NULL, attributes, number);
    }
    #define tensorplug_contents(cell) (((PyCellObject *)(cell))->ob_ref)
    """
    unsigned int version_of_class "tensorplug_version_of_class"(object kind)
    unsigned long long version_of_dict "tensorplug_version_of_dict"(object table)
    object table_of_function "tensorplug_attributes"(object function)
    bint runs_same "tensorplug_runs_same"(
        object function, Py_ssize_t number, list code, list defaults, list named, list attributes
    )
    PyObject* _contents "tensorplug_contents"(object cell)


cdef extern from "Python.h":
    ctypedef class types.CellType [object PyCellObject, check_size ignore]:
        @property
        cdef inline object cell_contents(self):
            value = _contents(self)
            if value is NULL:
                raise ValueError("a cell is empty")
            return <object>value


cpdef attributes_of(object function)


cdef class Held:
    cdef public list arrays, attributes, bases, cells, classes, code, containers, contents, defaults, dicts
    cdef public list functions, held, items, keys, kind_versions, kinds, members, named, names, objects, sizes
    cdef public list states, table_versions, tables, tensors, values, versions

    @cython.locals(
        number=Py_ssize_t, known="unsigned long long", table=dict, tensor=TensorBase, cell=CellType,
    )
    cpdef bint same(self) except -1

    cdef bint _has_members(self, Py_ssize_t number) except -1

    @cython.locals(place=Py_ssize_t, table=dict, names=list, values=list)
    cdef bint _has_names(self, Py_ssize_t number) except -1

    @cython.locals(place=Py_ssize_t, table=dict, keys=list, items=list)
    cdef bint _has_items(self, Py_ssize_t number) except -1

    @cython.locals(at=Py_ssize_t, number=Py_ssize_t, size=Py_ssize_t, held=list)
    cdef bint _contain_same(self) except -1
