cdef class Formula:
    cdef public object argument, function
    cdef public int position
    cdef public tuple positions, slots
    cdef public dict programs
    cdef public bint keyed, untraceable


cdef class Plan:
    cdef public tuple formulas, gradients, latest, saves
    cdef public list programs
    cdef public int only
    cdef public bint checked, partial
    cdef public CompiledDerivative rule


cdef class CompiledDerivative:
    cdef public object op, name, owner
    cdef public list quick, sources
    cdef public tuple connected, formulas
    cdef public dict plans

    cpdef Plan plan(self, object mask)
