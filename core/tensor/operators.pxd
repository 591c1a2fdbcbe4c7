from ..dispatch.op cimport Op
from ..dispatch.state cimport DispatchState
from ..dispatch.execution cimport show
from ..dispatch.fast_path cimport binary, is_operand, unary
from ..dispatch.view_calls cimport show_again
from .base cimport TensorBase, extra_of, new_tensor, storage_of

cdef DispatchState dispatch_state
cdef Op ABS, ADD, AND, CONTIGUOUS, DIV, EQ, FLOOR_DIVIDE, GE, GT, INVERT, LE, LSHIFT, LT, MATMUL, MUL, NE, NEG, OR
cdef Op PERMUTE, POW, REMAINDER, RSHIFT, SUB, T_OP, TRANSPOSE, VIEW, XOR
cdef object ABSENT


cdef class Operators(TensorBase):
    pass
