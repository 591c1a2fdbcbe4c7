"""Views, joining, splitting, gathering and rearranging against torch: values, dtypes, errors."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import tensorplug as tp

torch = pytest.importorskip("torch", reason="compares with torch")

# Functions of the library, a tensor (2, 3, 4), a vector of 5 and an index.
CALLS = {
    "x.split(0)": lambda L, x, v, i: x.split(0),
    "x.split(0,-1)": lambda L, x, v, i: x.split(0, -1),
    "L.zeros(0,3).split(0)": lambda L, x, v, i: L.zeros(0, 3).split(0),
    "x.split(2,2)": lambda L, x, v, i: x.split(2, 2),
    "x.split([1,2],1)": lambda L, x, v, i: x.split([1, 2], 1),
    "x.split([1,1],1)": lambda L, x, v, i: x.split([1, 1], 1),
    "x.split(-1)": lambda L, x, v, i: x.split(-1),
    "L.tensor(1.).split(1)": lambda L, x, v, i: L.tensor(1.0).split(1),
    "x.chunk(2,1)": lambda L, x, v, i: x.chunk(2, 1),
    "x.chunk(5,2)": lambda L, x, v, i: x.chunk(5, 2),
    "x.chunk(0)": lambda L, x, v, i: x.chunk(0),
    "L.tensor(1.).chunk(1)": lambda L, x, v, i: L.tensor(1.0).chunk(1),
    "v.tensor_split(3)": lambda L, x, v, i: v.tensor_split(3),
    "v.tensor_split((1,3))": lambda L, x, v, i: v.tensor_split((1, 3)),
    "v.tensor_split(L.tensor([1,3]))": lambda L, x, v, i: v.tensor_split(L.tensor([1, 3])),
    "v.tensor_split(0)": lambda L, x, v, i: v.tensor_split(0),
    "v.tensor_split((3,1,9))": lambda L, x, v, i: v.tensor_split((3, 1, 9)),
    "x.hsplit(3)": lambda L, x, v, i: x.hsplit(3),
    "x.hsplit(2)": lambda L, x, v, i: x.hsplit(2),
    "v.hsplit(5)": lambda L, x, v, i: v.hsplit(5),
    "v.vsplit(1)": lambda L, x, v, i: v.vsplit(1),
    "x.dsplit([1])": lambda L, x, v, i: x.dsplit([1]),
    "L.tensor(1.).unbind()": lambda L, x, v, i: L.tensor(1.0).unbind(),
    "x.unbind(3)": lambda L, x, v, i: x.unbind(3),
    "x.unflatten(1,(3,-1))": lambda L, x, v, i: x.unflatten(1, (3, -1)),
    "L.unbind(x[:0])": lambda L, x, v, i: L.unbind(x[:0]),
    "x.tile(2)": lambda L, x, v, i: x.tile(2),
    "x.tile((2,1,1,1))": lambda L, x, v, i: x.tile((2, 1, 1, 1)),
    "v.repeat()": lambda L, x, v, i: v.repeat(),
    "v.repeat(2,2)": lambda L, x, v, i: v.repeat(2, 2),
    "x.repeat(2)": lambda L, x, v, i: x.repeat(2),
    "v.repeat(-1)": lambda L, x, v, i: v.repeat(-1),
    "v.repeat_interleave(2)": lambda L, x, v, i: v.repeat_interleave(2),
    "x.repeat_interleave(2)": lambda L, x, v, i: x.repeat_interleave(2),
    "x.repeat_interleave(2,dim=1)": lambda L, x, v, i: x.repeat_interleave(2, dim=1),
    "v.repeat_interleave(L.tensor([1,0,2,0,1]))": lambda L, x, v, i: v.repeat_interleave(
        L.tensor([1, 0, 2, 0, 1])
    ),
    "L.repeat_interleave(L.tensor([1,0,2]))": lambda L, x, v, i: L.repeat_interleave(
        L.tensor([1, 0, 2])
    ),
    "v.repeat_interleave(L.tensor([2]))": lambda L, x, v, i: v.repeat_interleave(L.tensor([2])),
    "v.repeat_interleave(L.tensor([1,2]))": lambda L, x, v, i: v.repeat_interleave(
        L.tensor([1, 2])
    ),
    "v.repeat_interleave(L.tensor([1,0,2,0,1]),output_size=3)": lambda L, x, v, i: (
        v.repeat_interleave(L.tensor([1, 0, 2, 0, 1]), output_size=3)
    ),
    "v.repeat_interleave(-1)": lambda L, x, v, i: v.repeat_interleave(-1),
    "v.repeat_interleave(1.5)": lambda L, x, v, i: v.repeat_interleave(1.5),
    "x.flip(0)": lambda L, x, v, i: x.flip(0),
    "x.flip(0,1)": lambda L, x, v, i: x.flip(0, 1),
    "x.flip([])": lambda L, x, v, i: x.flip([]),
    "x.flip(0,0)": lambda L, x, v, i: x.flip(0, 0),
    "x.flip()": lambda L, x, v, i: x.flip(),
    "L.tensor(1.).flip(0)": lambda L, x, v, i: L.tensor(1.0).flip(0),
    "x.roll(1)": lambda L, x, v, i: x.roll(1),
    "x.roll((1,2))": lambda L, x, v, i: x.roll((1, 2)),
    "x.roll((1,2),(0,1))": lambda L, x, v, i: x.roll((1, 2), (0, 1)),
    "x.roll(1,5)": lambda L, x, v, i: x.roll(1, 5),
    "x.roll(5,2)": lambda L, x, v, i: x.roll(5, 2),
    "x[:0].roll(1,0)": lambda L, x, v, i: x[:0].roll(1, 0),
    "x.rot90()": lambda L, x, v, i: x.rot90(),
    "x.rot90(1,(0,0))": lambda L, x, v, i: x.rot90(1, (0, 0)),
    "x.rot90(-3,(1,2))": lambda L, x, v, i: x.rot90(-3, (1, 2)),
    "x.rot90(3)": lambda L, x, v, i: x.rot90(3),
    "x.rot90(2)": lambda L, x, v, i: x.rot90(2),
    "x.rot90(-1)": lambda L, x, v, i: x.rot90(-1),
    "v.rot90()": lambda L, x, v, i: v.rot90(),
    "v.take(L.tensor([[0,-1]]))": lambda L, x, v, i: v.take(L.tensor([[0, -1]])),
    "v.take(L.tensor([5]))": lambda L, x, v, i: v.take(L.tensor([5])),
    "v.take(L.tensor([0],dtype=L.int32))": lambda L, x, v, i: v.take(L.tensor([0], dtype=L.int32)),
    "x.index_select(0,L.tensor(1))": lambda L, x, v, i: x.index_select(0, L.tensor(1)),
    "x.index_select(0,L.tensor([2]))": lambda L, x, v, i: x.index_select(0, L.tensor([2])),
    "x.index_select(0,L.tensor([[1]]))": lambda L, x, v, i: x.index_select(0, L.tensor([[1]])),
    "L.tensor(3.).index_select(0,L.tensor([0,0]))": lambda L, x, v, i: L.tensor(3.0).index_select(
        0, L.tensor([0, 0])
    ),
    "L.tensor(3.).index_select(0,L.tensor([0]))": lambda L, x, v, i: L.tensor(3.0).index_select(
        0, L.tensor([0])
    ),
    "x.index_select(0,L.tensor([0],dtype=L.int32))": lambda L, x, v, i: x.index_select(
        0, L.tensor([0], dtype=L.int32)
    ),
    "v.gather(0,L.tensor([[1]]))": lambda L, x, v, i: v.gather(0, L.tensor([[1]])),
    "v.gather(0,L.tensor(1))": lambda L, x, v, i: v.gather(0, L.tensor(1)),
    "v.gather(0,L.tensor([-1]))": lambda L, x, v, i: v.gather(0, L.tensor([-1])),
    "v.gather(0,L.tensor([5]))": lambda L, x, v, i: v.gather(0, L.tensor([5])),
    "x.gather(1,L.zeros(1,5,2,dtype=L.int64))": lambda L, x, v, i: x.gather(
        1, L.zeros(1, 5, 2, dtype=L.int64)
    ),
    "x.gather(1,L.zeros(3,1,1,dtype=L.int64))": lambda L, x, v, i: x.gather(
        1, L.zeros(3, 1, 1, dtype=L.int64)
    ),
    "x.gather(1,L.zeros(0,dtype=L.int64))": lambda L, x, v, i: x.gather(
        1, L.zeros(0, dtype=L.int64)
    ),
    "L.tensor(3.).gather(0,L.tensor([0,0]))": lambda L, x, v, i: L.tensor(3.0).gather(
        0, L.tensor([0, 0])
    ),
    "L.tensor(3.).gather(0,L.tensor(0))": lambda L, x, v, i: L.tensor(3.0).gather(0, L.tensor(0)),
    "v.gather(0,L.tensor([1],dtype=L.int32))": lambda L, x, v, i: v.gather(
        0, L.tensor([1], dtype=L.int32)
    ),
    "v.scatter(0,L.tensor([0,1]),9)": lambda L, x, v, i: v.scatter(0, L.tensor([0, 1]), 9),
    "v.scatter(0,L.tensor([0,1]),value=9)": lambda L, x, v, i: v.scatter(
        0, L.tensor([0, 1]), value=9
    ),
    "v.scatter(0,L.tensor([0,1]),L.ones(1))": lambda L, x, v, i: v.scatter(
        0, L.tensor([0, 1]), L.ones(1)
    ),
    "v.scatter(0,L.tensor([0,1]),L.ones(3))": lambda L, x, v, i: v.scatter(
        0, L.tensor([0, 1]), L.ones(3)
    ),
    "v.scatter(0,L.tensor([0,1]),L.ones(2,dtype=L.int64))": lambda L, x, v, i: v.scatter(
        0, L.tensor([0, 1]), L.ones(2, dtype=L.int64)
    ),
    'v.scatter(0,L.tensor([0,1]),L.ones(2),reduce="add")': lambda L, x, v, i: v.scatter(
        0, L.tensor([0, 1]), L.ones(2), reduce="add"
    ),
    'v.scatter(0,L.tensor([0,1]),3,reduce="multiply")': lambda L, x, v, i: v.scatter(
        0, L.tensor([0, 1]), 3, reduce="multiply"
    ),
    "v.scatter(0,L.tensor([0,-1]),1.)": lambda L, x, v, i: v.scatter(0, L.tensor([0, -1]), 1.0),
    "v.scatter(0,L.tensor([0,5]),1.)": lambda L, x, v, i: v.scatter(0, L.tensor([0, 5]), 1.0),
    "v.scatter_add(0,L.tensor([0,0]),L.ones(2))": lambda L, x, v, i: v.scatter_add(
        0, L.tensor([0, 0]), L.ones(2)
    ),
    "v.scatter_add(0,L.tensor([0,5]),L.ones(2))": lambda L, x, v, i: v.scatter_add(
        0, L.tensor([0, 5]), L.ones(2)
    ),
    'v.scatter_reduce(0,L.tensor([0,0]),L.ones(2),"mean",include_self=False)': lambda L, x, v, i: (
        v.scatter_reduce(0, L.tensor([0, 0]), L.ones(2), "mean", include_self=False)
    ),
    'v.long().scatter_reduce(0,L.tensor([1,1]),L.ones(2).long(),"mean")': lambda L, x, v, i: (
        v.long().scatter_reduce(0, L.tensor([1, 1]), L.ones(2).long(), "mean")
    ),
    'v.scatter_reduce(0,L.tensor([0,0]),L.ones(2),"foo")': lambda L, x, v, i: v.scatter_reduce(
        0, L.tensor([0, 0]), L.ones(2), "foo"
    ),
    "v.index_add(0,i,L.ones(2),alpha=2)": lambda L, x, v, i: v.index_add(0, i, L.ones(2), alpha=2),
    "v.index_add(0,i,L.ones(3))": lambda L, x, v, i: v.index_add(0, i, L.ones(3)),
    "v.index_add(0,i,L.ones(2).double())": lambda L, x, v, i: v.index_add(0, i, L.ones(2).double()),
    "v.index_add(0,L.tensor([9]),L.ones(1))": lambda L, x, v, i: v.index_add(
        0, L.tensor([9]), L.ones(1)
    ),
    "v.index_copy(0,i,L.ones(2))": lambda L, x, v, i: v.index_copy(0, i, L.ones(2)),
    "v.index_copy(0,i,L.tensor(1.))": lambda L, x, v, i: v.index_copy(0, i, L.tensor(1.0)),
    "v.index_copy(0,L.tensor(0),L.tensor(1.))": lambda L, x, v, i: v.index_copy(
        0, L.tensor(0), L.tensor(1.0)
    ),
    "v.index_copy(0,L.tensor(9),L.tensor(1.))": lambda L, x, v, i: v.index_copy(
        0, L.tensor(9), L.tensor(1.0)
    ),
    "v.index_copy(0,i,L.ones(2).double())": lambda L, x, v, i: v.index_copy(
        0, i, L.ones(2).double()
    ),
    "v.index_fill(0,i,7)": lambda L, x, v, i: v.index_fill(0, i, 7),
    "v.index_fill(0,L.tensor([9]),7)": lambda L, x, v, i: v.index_fill(0, L.tensor([9]), 7),
    "v.index_fill(0,L.tensor([-1]),7)": lambda L, x, v, i: v.index_fill(0, L.tensor([-1]), 7),
    "v.index_fill(0,i,L.tensor(2))": lambda L, x, v, i: v.index_fill(0, i, L.tensor(2)),
    "v.index_fill(0,i,L.ones(1))": lambda L, x, v, i: v.index_fill(0, i, L.ones(1)),
    'v.index_reduce(0,i,L.ones(2),"prod")': lambda L, x, v, i: v.index_reduce(
        0, i, L.ones(2), "prod"
    ),
    'v.index_reduce(0,i,L.ones(2),"mean",include_self=False)': lambda L, x, v, i: v.index_reduce(
        0, i, L.ones(2), "mean", include_self=False
    ),
    'v.index_reduce(0,L.tensor([0,0]),L.ones(2)*3,"amin")': lambda L, x, v, i: v.index_reduce(
        0, L.tensor([0, 0]), L.ones(2) * 3, "amin"
    ),
    'v.index_reduce(0,i,L.ones(2),"sum")': lambda L, x, v, i: v.index_reduce(
        0, i, L.ones(2), "sum"
    ),
    'x.index_reduce(1,i,L.ones(2,2,4)*3,"amax")': lambda L, x, v, i: x.index_reduce(
        1, i, L.ones(2, 2, 4) * 3, "amax"
    ),
    "v.masked_select(v>2)": lambda L, x, v, i: v.masked_select(v > 2),
    "v.masked_select(L.ones(2,5)>0)": lambda L, x, v, i: v.masked_select(L.ones(2, 5) > 0),
    "v.masked_select(v)": lambda L, x, v, i: v.masked_select(v),
    "v.masked_scatter(v>2,L.tensor([9.,8.]))": lambda L, x, v, i: v.masked_scatter(
        v > 2, L.tensor([9.0, 8.0])
    ),
    "v.masked_scatter(v>2,L.tensor([9.]))": lambda L, x, v, i: v.masked_scatter(
        v > 2, L.tensor([9.0])
    ),
    "v.masked_scatter(v>2,L.tensor([9,8]))": lambda L, x, v, i: v.masked_scatter(
        v > 2, L.tensor([9, 8])
    ),
    "v.put(L.tensor([0,-1]),L.tensor([5.,6.]))": lambda L, x, v, i: v.put(
        L.tensor([0, -1]), L.tensor([5.0, 6.0])
    ),
    "v.put(L.tensor([0,0]),L.tensor([5.,6.]),accumulate=True)": lambda L, x, v, i: v.put(
        L.tensor([0, 0]), L.tensor([5.0, 6.0]), accumulate=True
    ),
    "v.put(L.tensor([0,0]),L.tensor([5.]))": lambda L, x, v, i: v.put(
        L.tensor([0, 0]), L.tensor([5.0])
    ),
    "L.take_along_dim(x,L.zeros(2,1,4,dtype=L.int64),1)": lambda L, x, v, i: L.take_along_dim(
        x, L.zeros(2, 1, 4, dtype=L.int64), 1
    ),
    "L.take_along_dim(x,L.zeros(3,dtype=L.int64))": lambda L, x, v, i: L.take_along_dim(
        x, L.zeros(3, dtype=L.int64)
    ),
    "L.take_along_dim(x,L.zeros(1,1,1,dtype=L.int64),1)": lambda L, x, v, i: L.take_along_dim(
        x, L.zeros(1, 1, 1, dtype=L.int64), 1
    ),
    "x.diagonal()": lambda L, x, v, i: x.diagonal(),
    "x.diagonal(1,1,2)": lambda L, x, v, i: x.diagonal(1, 1, 2),
    "x.diagonal(-5,1,2)": lambda L, x, v, i: x.diagonal(-5, 1, 2),
    "x.diagonal(0,1,1)": lambda L, x, v, i: x.diagonal(0, 1, 1),
    "v.diagonal()": lambda L, x, v, i: v.diagonal(),
    "v.diag()": lambda L, x, v, i: v.diag(),
    "v.diag(1)": lambda L, x, v, i: v.diag(1),
    "x[0].diag(-1)": lambda L, x, v, i: x[0].diag(-1),
    "x.diag()": lambda L, x, v, i: x.diag(),
    "v.diag_embed(1)": lambda L, x, v, i: v.diag_embed(1),
    "x.diag_embed()": lambda L, x, v, i: x.diag_embed(),
    "x.diag_embed(-2)": lambda L, x, v, i: x.diag_embed(-2),
    "x[0].diag_embed(0,0,2)": lambda L, x, v, i: x[0].diag_embed(0, 0, 2),
    "x.diagflat()": lambda L, x, v, i: x.diagflat(),
    "x[0,0,0].diagflat()": lambda L, x, v, i: x[0, 0, 0].diagflat(),
    "v.tril()": lambda L, x, v, i: v.tril(),
    "x.tril(1)": lambda L, x, v, i: x.tril(1),
    "x.long().triu(-1)": lambda L, x, v, i: x.long().triu(-1),
    "L.tril_indices(3,2)": lambda L, x, v, i: L.tril_indices(3, 2),
    "L.triu_indices(2,4,1,dtype=L.int32)": lambda L, x, v, i: L.triu_indices(
        2, 4, 1, dtype=L.int32
    ),
    "L.tril_indices(0,4)": lambda L, x, v, i: L.tril_indices(0, 4),
    "v.unfold(0,2,2)": lambda L, x, v, i: v.unfold(0, 2, 2),
    "x.unfold(2,3,1)": lambda L, x, v, i: x.unfold(2, 3, 1),
    "x.unfold(0,1,1)": lambda L, x, v, i: x.unfold(0, 1, 1),
    "x.unfold(1,2,1)": lambda L, x, v, i: x.unfold(1, 2, 1),
    "v.unfold(0,6,1)": lambda L, x, v, i: v.unfold(0, 6, 1),
    "L.tensor(1.).unfold(0,1,1)": lambda L, x, v, i: L.tensor(1.0).unfold(0, 1, 1),
    "v.unfold(0,0,1)": lambda L, x, v, i: v.unfold(0, 0, 1),
    "v.unfold(0,2,0)": lambda L, x, v, i: v.unfold(0, 2, 0),
    "x.as_strided((2,2),(1,2),1)": lambda L, x, v, i: x.as_strided((2, 2), (1, 2), 1),
    "x[1].as_strided((2,2),(1,2))": lambda L, x, v, i: x[1].as_strided((2, 2), (1, 2)),
    "x[1].t().as_strided((2,2),(1,2),3)": lambda L, x, v, i: x[1].t().as_strided((2, 2), (1, 2), 3),
    "x.as_strided((2,2),(1,200),1)": lambda L, x, v, i: x.as_strided((2, 2), (1, 200), 1),
    "x.as_strided((2,2),(1,))": lambda L, x, v, i: x.as_strided((2, 2), (1,)),
    "x.as_strided((2,2),(-1,1))": lambda L, x, v, i: x.as_strided((2, 2), (-1, 1)),
    "x.select_scatter(L.ones(3,4),0,1)": lambda L, x, v, i: x.select_scatter(L.ones(3, 4), 0, 1),
    "x.select_scatter(L.ones(4),0,1)": lambda L, x, v, i: x.select_scatter(L.ones(4), 0, 1),
    "x.slice_scatter(L.ones(2,3,2),2,1,None,2)": lambda L, x, v, i: x.slice_scatter(
        L.ones(2, 3, 2), 2, 1, None, 2
    ),
    "x.slice_scatter(L.ones(2,3,3),2,1,None,2)": lambda L, x, v, i: x.slice_scatter(
        L.ones(2, 3, 3), 2, 1, None, 2
    ),
    "x.diagonal_scatter(L.ones(4,2))": lambda L, x, v, i: x.diagonal_scatter(L.ones(4, 2)),
    "v.as_strided_scatter(L.ones(2),(2,),(2,))": lambda L, x, v, i: v.as_strided_scatter(
        L.ones(2), (2,), (2,)
    ),
    "L.meshgrid(v,i)": lambda L, x, v, i: L.meshgrid(v, i),
    'L.meshgrid(v,v[:2],indexing="xy")': lambda L, x, v, i: L.meshgrid(v, v[:2], indexing="xy"),
    'L.meshgrid(v,v[:2],v[:3],indexing="xy")': lambda L, x, v, i: L.meshgrid(
        v, v[:2], v[:3], indexing="xy"
    ),
    'L.meshgrid([v,v],indexing="ij")': lambda L, x, v, i: L.meshgrid([v, v], indexing="ij"),
    "L.meshgrid(v,x)": lambda L, x, v, i: L.meshgrid(v, x),
    "L.meshgrid(v[0],v)": lambda L, x, v, i: L.meshgrid(v[0], v),
    "L.meshgrid()": lambda L, x, v, i: L.meshgrid(),
    'L.meshgrid(v,indexing="ab")': lambda L, x, v, i: L.meshgrid(v, indexing="ab"),
    "L.cartesian_prod(i,v)": lambda L, x, v, i: L.cartesian_prod(i, v),
    "L.cartesian_prod(i,i)": lambda L, x, v, i: L.cartesian_prod(i, i),
    "L.cartesian_prod(i)": lambda L, x, v, i: L.cartesian_prod(i),
    "L.combinations(v)": lambda L, x, v, i: L.combinations(v),
    "L.combinations(i,3)": lambda L, x, v, i: L.combinations(i, 3),
    "L.combinations(i,3,True)": lambda L, x, v, i: L.combinations(i, 3, True),
    "L.combinations(i,0)": lambda L, x, v, i: L.combinations(i, 0),
    "L.block_diag(v,x[0],L.tensor(2))": lambda L, x, v, i: L.block_diag(v, x[0], L.tensor(2)),
    "L.block_diag(x)": lambda L, x, v, i: L.block_diag(x),
    "L.block_diag(i,v)": lambda L, x, v, i: L.block_diag(i, v),
    "L.view_as_complex(x)": lambda L, x, v, i: L.view_as_complex(x),
    "L.view_as_complex(v.reshape(5,1).expand(5,2))": lambda L, x, v, i: L.view_as_complex(
        v.reshape(5, 1).expand(5, 2)
    ),
    "L.view_as_complex(x[...,:2])": lambda L, x, v, i: L.view_as_complex(x[..., :2]),
    "L.view_as_complex(x[...,::2])": lambda L, x, v, i: L.view_as_complex(x[..., ::2]),
    "L.view_as_real(x)": lambda L, x, v, i: L.view_as_real(x),
    "x.view(L.int32)": lambda L, x, v, i: x.view(L.int32),
    "x.view(L.int64)": lambda L, x, v, i: x.view(L.int64),
    "x[...,::2].view(L.int64)": lambda L, x, v, i: x[..., ::2].view(L.int64),
    "x.view(L.int8)": lambda L, x, v, i: x.view(L.int8),
    "v.view(L.float64)": lambda L, x, v, i: v.view(L.float64),
    "L.tensor(1.).view(L.int8)": lambda L, x, v, i: L.tensor(1.0).view(L.int8),
    "L.tensor(1.).view(L.int32)": lambda L, x, v, i: L.tensor(1.0).view(L.int32),
    "x.narrow(0,1,2)": lambda L, x, v, i: x.narrow(0, 1, 2),
    "x.narrow(0,-1,1)": lambda L, x, v, i: x.narrow(0, -1, 1),
    "x.narrow(0,3,0)": lambda L, x, v, i: x.narrow(0, 3, 0),
    "x.narrow(0,2,0)": lambda L, x, v, i: x.narrow(0, 2, 0),
    "x.select(0,2)": lambda L, x, v, i: x.select(0, 2),
    "x.select(-1,-1)": lambda L, x, v, i: x.select(-1, -1),
    "L.cat([])": lambda L, x, v, i: L.cat([]),
    "L.cat([v,L.zeros(0)])": lambda L, x, v, i: L.cat([v, L.zeros(0)]),
    "L.cat([x,L.zeros(0)])": lambda L, x, v, i: L.cat([x, L.zeros(0)]),
    "L.cat([x,L.zeros(0,3)])": lambda L, x, v, i: L.cat([x, L.zeros(0, 3)]),
    "L.cat([v,i])": lambda L, x, v, i: L.cat([v, i]),
    "L.cat([L.tensor(1.)])": lambda L, x, v, i: L.cat([L.tensor(1.0)]),
    "L.cat(v)": lambda L, x, v, i: L.cat(v),
    "L.cat([v,1])": lambda L, x, v, i: L.cat([v, 1]),
    "L.cat([v],1)": lambda L, x, v, i: L.cat([v], 1),
    "L.cat((x,x),dim=-1)": lambda L, x, v, i: L.cat((x, x), dim=-1),
    "L.cat((x,x),axis=1)": lambda L, x, v, i: L.cat((x, x), axis=1),
    "L.stack([])": lambda L, x, v, i: L.stack([]),
    "L.stack([v,i])": lambda L, x, v, i: L.stack([v, i]),
    "L.stack([v,v],-1)": lambda L, x, v, i: L.stack([v, v], -1),
    "L.stack([v],2)": lambda L, x, v, i: L.stack([v], 2),
    "L.stack([L.tensor(1),L.tensor(2.)])": lambda L, x, v, i: L.stack([L.tensor(1), L.tensor(2.0)]),
    "L.cat([v.bool(),i.byte()])": lambda L, x, v, i: L.cat([v.bool(), i.byte()]),
    "L.hstack([L.tensor(1.),v])": lambda L, x, v, i: L.hstack([L.tensor(1.0), v]),
    "L.row_stack([v,v])": lambda L, x, v, i: L.row_stack([v, v]),
    "L.column_stack([v,v[:4]])": lambda L, x, v, i: L.column_stack([v, v[:4]]),
    "L.column_stack([L.tensor(1),L.tensor(2)])": lambda L, x, v, i: L.column_stack(
        [L.tensor(1), L.tensor(2)]
    ),
    "L.dstack([v,v])": lambda L, x, v, i: L.dstack([v, v]),
    "L.hstack([])": lambda L, x, v, i: L.hstack([]),
    "x.permute(2,0,1)": lambda L, x, v, i: x.permute(2, 0, 1),
    "x.permute(0,1)": lambda L, x, v, i: x.permute(0, 1),
    "x.permute(0,0,1)": lambda L, x, v, i: x.permute(0, 0, 1),
    "x.permute(5,0,1)": lambda L, x, v, i: x.permute(5, 0, 1),
    "L.permute(x,dims=(1,0,2))": lambda L, x, v, i: L.permute(x, dims=(1, 0, 2)),
    "x.transpose(0,3)": lambda L, x, v, i: x.transpose(0, 3),
    "x.t()": lambda L, x, v, i: x.t(),
    "x[0].t()": lambda L, x, v, i: x[0].t(),
    "v.t()": lambda L, x, v, i: v.t(),
    "x.T": lambda L, x, v, i: x.T,
    "x.mT": lambda L, x, v, i: x.mT,
    "v.mT": lambda L, x, v, i: v.mT,
    "x[0].H": lambda L, x, v, i: x[0].H,
    "x.H": lambda L, x, v, i: x.H,
    "x.mH": lambda L, x, v, i: x.mH,
    "v.mH": lambda L, x, v, i: v.mH,
    "x.adjoint()": lambda L, x, v, i: x.adjoint(),
    "v.adjoint()": lambda L, x, v, i: v.adjoint(),
    "x.swapaxes(0,1)": lambda L, x, v, i: x.swapaxes(0, 1),
    "x.movedim((0,1),(1,0))": lambda L, x, v, i: x.movedim((0, 1), (1, 0)),
    "x.movedim((0,0),(1,2))": lambda L, x, v, i: x.movedim((0, 0), (1, 2)),
    "x.moveaxis(0,-1)": lambda L, x, v, i: x.moveaxis(0, -1),
    "x.squeeze(0)": lambda L, x, v, i: x.squeeze(0),
    "x[:1].squeeze()": lambda L, x, v, i: x[:1].squeeze(),
    "x[:1].squeeze(0)": lambda L, x, v, i: x[:1].squeeze(0),
    "x[:1,:1].squeeze((0,1))": lambda L, x, v, i: x[:1, :1].squeeze((0, 1)),
    "x.squeeze(4)": lambda L, x, v, i: x.squeeze(4),
    "x.unsqueeze(4)": lambda L, x, v, i: x.unsqueeze(4),
    "x.unsqueeze(-4)": lambda L, x, v, i: x.unsqueeze(-4),
    "x.unsqueeze(-5)": lambda L, x, v, i: x.unsqueeze(-5),
    "v.reshape(3)": lambda L, x, v, i: v.reshape(3),
    "v.reshape(-1,-1)": lambda L, x, v, i: v.reshape(-1, -1),
    "v.reshape(5,-1)": lambda L, x, v, i: v.reshape(5, -1),
    "L.zeros(0,2).reshape(-1)": lambda L, x, v, i: L.zeros(0, 2).reshape(-1),
    "L.zeros(0,2).reshape(0,-1)": lambda L, x, v, i: L.zeros(0, 2).reshape(0, -1),
    "x.permute(2,1,0).reshape(4,6)": lambda L, x, v, i: x.permute(2, 1, 0).reshape(4, 6),
    "x.permute(2,1,0).view(4,6)": lambda L, x, v, i: x.permute(2, 1, 0).view(4, 6),
    "x.permute(2,1,0).view(4,3,2)": lambda L, x, v, i: x.permute(2, 1, 0).view(4, 3, 2),
    "x.view(6,-1)": lambda L, x, v, i: x.view(6, -1),
    "x.view([6,4])": lambda L, x, v, i: x.view([6, 4]),
    "x.view(7)": lambda L, x, v, i: x.view(7),
    "L.reshape(x,shape=(24,))": lambda L, x, v, i: L.reshape(x, shape=(24,)),
    "x.flatten()": lambda L, x, v, i: x.flatten(),
    "x.flatten(1)": lambda L, x, v, i: x.flatten(1),
    "x.flatten(0,1)": lambda L, x, v, i: x.flatten(0, 1),
    "x.flatten(1,0)": lambda L, x, v, i: x.flatten(1, 0),
    "L.tensor(1.).flatten()": lambda L, x, v, i: L.tensor(1.0).flatten(),
    "x.ravel()": lambda L, x, v, i: x.ravel(),
    "x.T.ravel()": lambda L, x, v, i: x.T.ravel(),
    "L.zeros(0,3).ravel()": lambda L, x, v, i: L.zeros(0, 3).ravel(),
    "x.unflatten(0,(2,2))": lambda L, x, v, i: x.unflatten(0, (2, 2)),
    "x.unflatten(1,())": lambda L, x, v, i: x.unflatten(1, ()),
    "v.expand(2,5)": lambda L, x, v, i: v.expand(2, 5),
    "v.expand(2,-1)": lambda L, x, v, i: v.expand(2, -1),
    "v.expand(-1,5)": lambda L, x, v, i: v.expand(-1, 5),
    "v.expand(2,6)": lambda L, x, v, i: v.expand(2, 6),
    "v.expand(5,5,5)": lambda L, x, v, i: v.expand(5, 5, 5),
    "x.expand(2,3)": lambda L, x, v, i: x.expand(2, 3),
    "v.expand_as(x[:,0])": lambda L, x, v, i: v.expand_as(x[:, 0]),
    "v.broadcast_to((3,5))": lambda L, x, v, i: v.broadcast_to((3, 5)),
    "v.sum_to_size(1)": lambda L, x, v, i: v.sum_to_size(1),
    "x.sum_to_size(3,1)": lambda L, x, v, i: x.sum_to_size(3, 1),
    "x.sum_to_size(2,1)": lambda L, x, v, i: x.sum_to_size(2, 1),
    "x.sum_to_size(1)": lambda L, x, v, i: x.sum_to_size(1),
    "L.broadcast_tensors(v[:,None],i)": lambda L, x, v, i: L.broadcast_tensors(v[:, None], i),
    "L.broadcast_tensors(v,i)": lambda L, x, v, i: L.broadcast_tensors(v, i),
    "L.atleast_1d(L.tensor(1.))": lambda L, x, v, i: L.atleast_1d(L.tensor(1.0)),
    "L.atleast_2d(v,x)": lambda L, x, v, i: L.atleast_2d(v, x),
    "L.atleast_3d([v,x[0]])": lambda L, x, v, i: L.atleast_3d([v, x[0]]),
    "L.fliplr(v)": lambda L, x, v, i: L.fliplr(v),
    "L.flipud(x)": lambda L, x, v, i: L.flipud(x),
    "v.index_put((i,),L.ones(2))": lambda L, x, v, i: v.index_put((i,), L.ones(2)),
    "v.index_put((i,),L.ones(3))": lambda L, x, v, i: v.index_put((i,), L.ones(3)),
    "v.index_put((v>2,),L.ones(2))": lambda L, x, v, i: v.index_put((v > 2,), L.ones(2)),
    "v.index_put((v>2,),L.tensor(1.),accumulate=True)": lambda L, x, v, i: v.index_put(
        (v > 2,), L.tensor(1.0), accumulate=True
    ),
    "v.index_put((i.byte(),),L.ones(1))": lambda L, x, v, i: v.index_put((i.byte(),), L.ones(1)),
    "v.index_put((L.tensor([9]),),L.tensor(1.))": lambda L, x, v, i: v.index_put(
        (L.tensor([9]),), L.tensor(1.0)
    ),
    "x.put(L.tensor([[0,-1]]),L.tensor([[5.,6.]]))": lambda L, x, v, i: x.put(
        L.tensor([[0, -1]]), L.tensor([[5.0, 6.0]])
    ),
    "x.take(L.tensor(7))": lambda L, x, v, i: x.take(L.tensor(7)),
}


def same(ours, theirs):
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            same(one, other)
        return
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert repr(ours.dtype).rpartition(".")[2] == repr(theirs.dtype).rpartition(".")[2]
    np.testing.assert_array_equal(np.array(ours.tolist()), np.array(theirs.tolist()))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_as_torch(call):
    results = []
    for L in (tp, torch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x, v = L.arange(24.0).reshape(2, 3, 4), L.arange(5.0)
            try:
                results.append(call(L, x, v, L.tensor([0, 1])))
            except Exception as error:
                results.append(error)
    ours, theirs = results
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        assert type(ours) is type(theirs), (ours, theirs)
    else:
        same(ours, theirs)
