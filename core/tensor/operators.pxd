from ..dispatch.op cimport Op
from ..dispatch.state cimport DispatchState
from ..dispatch.fast_path cimport binary, is_operand, unary
from .base cimport TensorBase

cdef DispatchState dispatch_state
cdef Op ABS, ADD, AND, DIV, EQ, FLOOR_DIVIDE, GE, GT, INVERT, LE, LSHIFT, LT, MATMUL, MUL, NE, NEG, OR
cdef Op POW, REMAINDER, RSHIFT, SUB, XOR


cdef class Operators(TensorBase):
    pass
