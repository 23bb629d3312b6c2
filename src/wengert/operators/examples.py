"""Examples for the documentation of the operators that programs use most, run by the tests."""

EXAMPLES: dict[str, str] = {
    "abs": """\
>>> wengert.abs(wengert.tensor([-1.5, 2.0]))
tensor([1.5000, 2.0000])
""",
    "exp": """\
>>> wengert.exp(wengert.tensor([0.0, 1.0]))
tensor([1.0000, 2.7183])
""",
    "log": """\
>>> wengert.log(wengert.tensor([1.0, 10.0]))
tensor([0.0000, 2.3026])
""",
    "sqrt": """\
>>> wengert.sqrt(wengert.tensor([4.0, 2.0]))
tensor([2.0000, 1.4142])
""",
    "rsqrt": """\
>>> wengert.rsqrt(wengert.tensor([4.0, 16.0]))
tensor([0.5000, 0.2500])
""",
    "sin": """\
>>> wengert.sin(wengert.tensor([0.0, 1.0]))
tensor([0.0000, 0.8415])
""",
    "cos": """\
>>> wengert.cos(wengert.tensor([0.0, 1.0]))
tensor([1.0000, 0.5403])
""",
    "tanh": """\
>>> wengert.tanh(wengert.tensor([-1.0, 0.0, 1.0]))
tensor([-0.7616,  0.0000,  0.7616])
""",
    "sigmoid": """\
>>> wengert.sigmoid(wengert.tensor([-2.0, 0.0, 2.0]))
tensor([0.1192, 0.5000, 0.8808])
""",
    "relu": """\
>>> wengert.relu(wengert.tensor([-1.0, 0.0, 2.0]))
tensor([0., 0., 2.])
""",
    "neg": """\
>>> wengert.neg(wengert.tensor([1.0, -2.0]))
tensor([-1.,  2.])
""",
    "add": """\
>>> wengert.add(wengert.tensor([1, 2]), wengert.tensor([10, 20]), alpha=2)
tensor([21, 42])
""",
    "sub": """\
>>> wengert.sub(wengert.tensor([1, 2]), 5)
tensor([-4, -3])
""",
    "mul": """\
>>> wengert.mul(wengert.tensor([[1], [2]]), wengert.tensor([3, 4]))
tensor([[3, 4],
        [6, 8]])
""",
    "pow": """\
>>> wengert.pow(wengert.tensor([1.0, 2.0, 3.0]), 2)
tensor([1., 4., 9.])
""",
    "maximum": """\
>>> wengert.maximum(wengert.tensor([1, 5]), wengert.tensor([3, 2]))
tensor([3, 5])
""",
    "minimum": """\
>>> wengert.minimum(wengert.tensor([1, 5]), wengert.tensor([3, 2]))
tensor([1, 2])
""",
    "clamp": """\
>>> wengert.clamp(wengert.tensor([-1.0, 0.5, 3.0]), min=0, max=1)
tensor([0.0000, 0.5000, 1.0000])
""",
    "round": """\
>>> wengert.round(wengert.tensor([0.5, 1.5, 2.567]))
tensor([0., 2., 3.])
""",
    "floor": """\
>>> wengert.floor(wengert.tensor([-0.5, 1.5]))
tensor([-1.,  1.])
""",
    "isnan": """\
>>> wengert.isnan(wengert.tensor([1.0, float('nan')]))
tensor([False,  True])
""",
    "eq": """\
>>> wengert.eq(wengert.tensor([1, 2]), wengert.tensor([1, 3]))
tensor([ True, False])
""",
    "lerp": """\
>>> wengert.lerp(wengert.tensor([0.0, 10.0]), wengert.tensor([1.0, 20.0]), 0.5)
tensor([ 0.5000, 15.0000])
""",
    "logaddexp": """\
>>> wengert.logaddexp(wengert.tensor([0.0]), wengert.tensor([0.0]))
tensor([0.6931])
""",
    "erf": """\
>>> wengert.erf(wengert.tensor([0.0, 1.0]))
tensor([0.0000, 0.8427])
""",
    "addmm": """\
>>> wengert.addmm(wengert.ones(2, 2), wengert.eye(2), 2 * wengert.eye(2))
tensor([[3., 1.],
        [1., 3.]])
""",
    "mm": """\
>>> wengert.mm(wengert.tensor([[1, 2]]), wengert.tensor([[3], [4]]))
tensor([[11]])
""",
    "bmm": """\
>>> wengert.bmm(wengert.ones(2, 1, 3), wengert.ones(2, 3, 1)).shape
wengert.Size([2, 1, 1])
""",
    "matmul": """\
>>> wengert.matmul(wengert.tensor([[1.0, 2.0], [3.0, 4.0]]), wengert.tensor([1.0, 1.0]))
tensor([3., 7.])
""",
    "dot": """\
>>> wengert.dot(wengert.tensor([1, 2, 3]), wengert.tensor([4, 5, 6]))
tensor(32)
""",
    "sum": """\
>>> wengert.sum(wengert.tensor([[1, 2], [3, 4]]), dim=0)
tensor([4, 6])
""",
    "mean": """\
>>> wengert.mean(wengert.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=1)
tensor([1.5000, 3.5000])
""",
    "prod": """\
>>> wengert.prod(wengert.tensor([2, 3, 4]))
tensor(24)
""",
    "amax": """\
>>> wengert.amax(wengert.tensor([[1, 4], [3, 2]]), dim=1)
tensor([4, 3])
""",
    "max": """\
>>> wengert.max(wengert.tensor([[1, 4], [3, 2]]), dim=1)
wengert.return_types.max(
values=tensor([4, 3]),
indices=tensor([1, 0]))
""",
    "argmax": """\
>>> wengert.argmax(wengert.tensor([[1, 4], [3, 2]]), dim=1)
tensor([1, 0])
""",
    "std": """\
>>> wengert.std(wengert.tensor([1.0, 2.0, 3.0, 4.0]))
tensor(1.2910)
""",
    "var": """\
>>> wengert.var(wengert.tensor([1.0, 2.0, 3.0, 4.0]), correction=0)
tensor(1.2500)
""",
    "logsumexp": """\
>>> wengert.logsumexp(wengert.tensor([0.0, 0.0]), dim=0)
tensor(0.6931)
""",
    "cumsum": """\
>>> wengert.cumsum(wengert.tensor([1, 2, 3]), dim=0)
tensor([1, 3, 6])
""",
    "any": """\
>>> wengert.any(wengert.tensor([False, True]))
tensor(True)
""",
    "all": """\
>>> wengert.all(wengert.tensor([[True, True], [False, True]]), dim=1)
tensor([ True, False])
""",
    "sort": """\
>>> wengert.sort(wengert.tensor([3, 1, 2]), descending=True)
wengert.return_types.sort(
values=tensor([3, 2, 1]),
indices=tensor([0, 2, 1]))
""",
    "topk": """\
>>> wengert.topk(wengert.tensor([3, 1, 2]), 2)
wengert.return_types.topk(
values=tensor([3, 2]),
indices=tensor([0, 2]))
""",
    "argsort": """\
>>> wengert.argsort(wengert.tensor([3, 1, 2]))
tensor([1, 2, 0])
""",
    "gather": """\
>>> wengert.gather(wengert.tensor([[1, 2], [3, 4]]), 1, wengert.tensor([[1], [0]]))
tensor([[2],
        [3]])
""",
    "scatter": """\
>>> wengert.scatter(wengert.zeros(3), 0, wengert.tensor([2]), 5.0)
tensor([0., 0., 5.])
""",
    "index_select": """\
>>> wengert.index_select(wengert.tensor([[1, 2], [3, 4]]), 1, wengert.tensor([1]))
tensor([[2],
        [4]])
""",
    "masked_fill": """\
>>> wengert.tensor([1.0, 2.0]).masked_fill(wengert.tensor([True, False]), 0)
tensor([0., 2.])
""",
    "permute": """\
>>> wengert.permute(wengert.zeros(2, 3, 5), (2, 0, 1)).shape
wengert.Size([5, 2, 3])
""",
    "transpose": """\
>>> wengert.transpose(wengert.tensor([[1, 2], [3, 4]]), 0, 1)
tensor([[1, 3],
        [2, 4]])
""",
    "unsqueeze": """\
>>> wengert.unsqueeze(wengert.tensor([1, 2]), 1)
tensor([[1],
        [2]])
""",
    "squeeze": """\
>>> wengert.squeeze(wengert.zeros(1, 3, 1)).shape
wengert.Size([3])
""",
    "flip": """\
>>> wengert.flip(wengert.tensor([1, 2, 3]), (0,))
tensor([3, 2, 1])
""",
    "tril": """\
>>> wengert.tril(wengert.ones(2, 2))
tensor([[1., 0.],
        [1., 1.]])
""",
    "diagonal": """\
>>> wengert.diagonal(wengert.tensor([[1, 2], [3, 4]]))
tensor([1, 4])
""",
}
