from .call_cache cimport CachedCall
from .view_plans cimport ViewPlan, ViewPlans
from .op cimport Op
from ..tensor.base cimport TensorBase


cdef class GradientLayer:
    cdef public bint watched

    cpdef bint enabled(self)
    cpdef record_unary(self, Op op, TensorBase output, TensorBase input)
    cpdef record_binary(
        self, Op op, TensorBase output, object input, object other, int left, int right, bint broadcast
    )
    cpdef record(self, Op op, tuple values, tuple outputs)
    cpdef record_cached(self, Op op, CachedCall cached, tuple args, TensorBase output)
    cpdef record_listed(self, Op op, CachedCall cached, object tensors, TensorBase output)
    cpdef record_cached_outputs(self, Op op, CachedCall cached, tuple args, object outputs)
    cpdef mark_if_inference(self, TensorBase output)
    cpdef record_view(self, Op op, TensorBase source, tuple values, TensorBase output, ViewPlan plan)
    cpdef release_view(self, TensorBase output)
    cpdef bint requires_grad(self, object tensor)
    cpdef record_views(self, TensorBase source, list outputs, ViewPlans plans)
