"""Each thing done first after the import, when hardly any operator is declared yet."""

import subprocess
import sys

import pytest

import wengert
from wengert.core.registry import operators
from wengert.dispatch.inplace import InplaceOperator
from wengert.dispatch.operator import Operator
from wengert.dispatch.overridable import Overridable
from wengert.operators import catalogue, declare
from wengert.operators.names import ALIASES, FUNCTIONS_ONLY
from wengert.tensor import registration

# Both forms of the package have the same Python here: the compiled run suffices.
pytestmark = pytest.mark.slow

# Forks a child for each line that it reads, so that each is the first use of a fresh import.
RUN_EACH = """
import os, sys, traceback, warnings
import wengert
warnings.simplefilter("ignore")
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            exec(line, {"wengert": wengert})
        except BaseException:
            print(line, file=sys.stderr)
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    os.waitpid(child, 0)
"""

FIRST_STEPS = [
    "x = wengert.ones(3); assert repr(x) == 'tensor([1., 1., 1.])'",
    "x = wengert.ones(3, requires_grad=True); (x * x).sum().backward(); assert x.grad[0] == 2",
    "assert wengert.vmap(lambda x: x.sort()[0])(wengert.ones(2, 3)).shape == (2, 3)",
    "assert wengert.func.grad(lambda x: x.logsumexp(0))(wengert.zeros(2))[0] == 0.5",
    "assert wengert.func.jvp(wengert.sin, (wengert.zeros(2),), (wengert.ones(2),))[1][0] == 1",
    "assert wengert.func.hessian(lambda x: (x**3).sum())(wengert.ones(1)).item() == 6",
    "assert wengert.compile(lambda x: x.cumsum(0))(wengert.ones(3))[2] == 3",
    "assert wengert.ones(2).real.sum() == 2",
    "x = wengert.zeros(2, dtype=wengert.complex64); x.imag = 1; assert x[0] == 1j",
    "x = wengert.zeros(3); x[wengert.tensor([0, 2])] = 1; assert x.sum() == 2",
    "assert wengert.arange(4)[1:3].tolist() == [1, 2]",
    "x = wengert.zeros(3); x[1] = 5; assert x.tolist() == [0, 5, 0]",
    "assert (wengert.ones(2, 3) @ wengert.ones(3)).tolist() == [3, 3]",
    "import numpy; assert (numpy.ones((2, 3)) @ wengert.ones(3).double()).shape == (2,)",
    "assert wengert.ones(2, 3).T.shape == wengert.ones(2, 3).mT.shape == (3, 2)",
    "b = wengert.ones(2, requires_grad=True); (wengert.ones(3, 2) * b).sum().backward(); "
    "assert b.grad.tolist() == [3, 3]",
    "x = wengert.ones(2, requires_grad=True); (x.double() * 2).backward(wengert.ones(2).double()); "
    "assert x.grad.dtype is wengert.float32",
    "x = wengert.zeros(3, 2); x.t_(); assert x.shape == (2, 3)",
    "x = wengert.ones(2); y = x.abs_(); assert y is x",
    "import copy; assert copy.deepcopy(wengert.ones(2)).sum() == 2",
    "import pickle; assert pickle.loads(pickle.dumps(wengert.cat)) is wengert.cat",
    "import io; f = io.BytesIO(); wengert.save(wengert.ones(2), f); f.seek(0); "
    "assert wengert.load(f).sum() == 2",
    "import numpy; assert isinstance(numpy.cumsum(wengert.ones(3), 0), wengert.Tensor)",
    "p = wengert.ones(2); p.grad = wengert.ones(2); wengert.optim.Adam([p], lr=1.0).step(); "
    "assert p.abs().max() < 1e-6",
    "from wengert import stack, Tensor; assert stack([Tensor([1.0])]).shape == (1, 1)",
    "assert wengert.ops.aten.sort.default(wengert.ones(2))[1][0] == 0",
    "assert wengert.nn.functional.softmax(wengert.zeros(2), 0)[0] == 0.5",
    "assert wengert.empty(2, 3, device='meta').argsort().shape == (2, 3)",
    "with wengert.autograd.detect_anomaly(): wengert.ones(1, requires_grad=True).norm().backward()",
    "assert wengert.autograd.gradcheck(wengert.tril, wengert.ones(2, 2).double().requires_grad_())",
    "assert not wengert.is_anomaly_enabled(); wengert.set_printoptions(precision=3)",
    "T = type('T', (wengert.Tensor,), {'sort': lambda self: super(T, self).sort()}); "
    "assert T([2.0, 1.0]).sort()[0][0] == 1",
    "from wengert import *; assert cat([ones(1)]).shape == (1,); assert vmap(sin)(ones(1)) > 0",
    "from wengert import *; import random; assert 'random' not in wengert.__all__",
    "import wengert.operators.sorting; assert wengert.sort is wengert.Tensor.sort",
    "import wengert.nn.functional as F; assert F.one_hot(wengert.tensor([1])).shape == (1, 2)",
    "import importlib; importlib.reload(wengert); assert wengert.ones(2).sort()[0].sum() == 2",
    "from concurrent.futures import ThreadPoolExecutor as Pool; "
    "assert len(set(Pool(8).map(lambda _: id(wengert.Tensor.sort), range(99)))) == 1",
]
COLD_NAMES = [
    f"assert wengert.{name} is not None" for name in registration.deferred_functions()
] + [
    f"assert callable(wengert.Tensor.{name}); assert callable(wengert.ones(2).{name})"
    for name in catalogue.MODULE_OF if name not in FUNCTIONS_ONLY
]  # fmt: skip


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param(FIRST_STEPS, id="steps"),
        pytest.param(COLD_NAMES, id="names", marks=pytest.mark.slow),
    ],
)
def test_works_as_the_first_use(lines):
    done = subprocess.run(
        [sys.executable, "-c", RUN_EACH], input="\n".join(lines), capture_output=True, text=True
    )
    assert done.returncode == 0 and done.stderr == ""


def test_import_declares_only_the_core():
    code = "import sys, wengert; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    later = {f"wengert.operators.{module}" for module in catalogue.DEFERRED} | {
        "wengert.autograd.forward_ad", "wengert.autograd.graph", "wengert.creation.random",
        "wengert.creation.ranges", "wengert.random", "wengert.version",
    }  # fmt: skip
    assert not later & set(loaded.split())


def test_a_trace_with_an_error_function_does_without_scipy():
    """Importing it takes longer than all else in a first call; loops have an erf of their own."""
    run_alone("""
import sys, wengert
from wengert.compiler import trace

def loss(x):
    return wengert.nn.functional.gelu(x).erf().sum()

trace(wengert.func.grad(loss), wengert.ones(50))
value = wengert.tensor(0.5, dtype=wengert.float64).erf().item()
assert value == 0.5204998778130465, value
for dtype in (wengert.float32, wengert.float16, wengert.bfloat16):
    assert wengert.tensor([[0.5]], dtype=dtype).erf().dtype is dtype
assert wengert.tensor([2]).erf().tolist() == [wengert.tensor(2.0).erf().item()]
assert "scipy" not in sys.modules
""")


@pytest.mark.parametrize("frozen", [False, True])
def test_import_leaves_the_collector_as_it_was(frozen):
    run_alone(f"""
import gc
if {frozen}:
    gc.freeze()
import wengert
assert gc.isenabled() and bool(gc.get_freeze_count()) is {frozen}
gc.disable()
import importlib
importlib.reload(wengert)
assert not gc.isenabled()
""")


def test_every_deferred_name_is_in_the_directory():
    assert registration.deferred_functions() <= set(dir(wengert))
    assert set(catalogue.MODULE_OF) - FUNCTIONS_ONLY <= set(dir(wengert.Tensor))


def test_directories_name_what_is_public_and_no_internal_module():
    run_alone("""
from types import ModuleType
import wengert
import wengert.operators.sorting, wengert.tensor.printing

public = {"_C", "__future__", "_library", "accelerator", "amp", "as_torch", "autograd", "backends",
          "compiler", "cuda", "demo", "distributed", "distributions", "fft", "func", "jit",
          "library", "linalg", "masked", "nn", "ops", "optim", "overrides", "random",
          "serialization", "signal", "special", "storage", "testing", "types", "utils", "version",
          "viz"}
shown = {name for name in dir(wengert) if isinstance(getattr(wengert, name), ModuleType)}
assert shown == public, shown ^ public

public = {"anomaly_mode", "forward_ad", "function", "functional", "grad_mode", "graph", "profiler",
          "profiler_legacy", "profiler_util"}
names = set(dir(wengert.autograd))
assert {"Function", "backward", "detect_anomaly", "grad", "gradcheck", "no_grad"} <= names
assert {"Any", "Tensor", "load", "thread_state", "zeros_like"}.isdisjoint(names)
shown = {name for name in names if isinstance(getattr(wengert.autograd, name), ModuleType)}
assert shown == public, shown ^ public
""")


def test_every_in_place_operator_is_a_method():
    for name, operator in operators().items():
        if name.endswith("_") and not name.startswith("_"):
            attached = getattr(wengert.Tensor, name)
            assert attached is operator or isinstance(attached, Overridable), name
            assert isinstance(operator, (InplaceOperator, Operator))


@pytest.mark.parametrize("alias", sorted(ALIASES))
def test_aliases_are_the_functions_and_methods_that_they_stand_for(alias):
    name = ALIASES[alias]
    assert getattr(wengert, alias) is getattr(wengert, name)
    assert getattr(wengert.Tensor, alias) is getattr(wengert.Tensor, name)
    if hasattr(wengert.Tensor, name + "_"):
        assert getattr(wengert.Tensor, alias + "_") is getattr(wengert.Tensor, name + "_")


def test_function_and_method_are_one():
    assert wengert.cumsum is wengert.Tensor.cumsum
    assert wengert.sort is wengert.Tensor.sort


def test_subclass_reaches_a_deferred_method_by_super():
    class Reversed(wengert.Tensor):
        def flip(self, dims):
            return super().flip(dims)

    assert Reversed([1.0, 2.0]).flip([0]).tolist() == [2.0, 1.0]


def run_alone(program):
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr


def test_interrupted_first_use_can_be_repeated():
    """Interrupted after one operator, two operators and so on, until the module is complete."""
    run_alone("""
import wengert
from wengert.operators import declare

x, known, interruptions = wengert.tensor([2.0, 1.0]), declare.register, 0

def interrupt_after(count):
    def register(operator):
        nonlocal count
        known(operator)
        count -= 1
        if count == 0:
            raise KeyboardInterrupt
    declare.register = register

for count in range(1, 1000):
    interrupt_after(count)
    try:
        x.sort()
        break
    except KeyboardInterrupt:
        interruptions += 1
assert interruptions > 3
declare.register = known
assert x.sort()[0].tolist() == [1.0, 2.0] and wengert.topk(x, 1)[0] == 2
""")


def test_fork_waits_for_a_first_use():
    """A child could not finish the import that another thread of its parent has begun."""
    run_alone("""
import os, signal, sys, threading, time
import wengert
from wengert.operators import declare

x, known, begun = wengert.tensor([2.0, 1.0]), declare.register, threading.Event()

def register(operator):
    begun.set()
    time.sleep(0.1)
    known(operator)

declare.register = register
thread = threading.Thread(target=lambda: x.sort())
thread.start()
begun.wait()
child = os.fork()
if not child:
    signal.alarm(300)
    os._exit(x.sort()[0].tolist() != [1.0, 2.0])
thread.join()
assert os.waitpid(child, 0)[1] == 0
""")


def test_threads_look_up_operators_while_they_become_more():
    run_alone("""
import sys, threading
import wengert
from wengert.library import overloads

failures = []

def look_up():
    try:
        for _ in range(50):
            overloads._own_count = 0
            assert wengert.ops.aten.sort.default is not None
    except AttributeError as error:
        failures.append(error)

sys.setswitchinterval(1e-6)
threads = [threading.Thread(target=look_up) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not failures
""")


def test_two_declarations_of_one_name_are_refused():
    linear_in = {"self": lambda t: t}
    with pytest.raises(ValueError, match="operator sort is declared twice"):
        declare.elementwise("sort(Tensor self) -> Tensor", "negative", linear_in)
    first = declare.elementwise("_once(Tensor self) -> Tensor", "negative", linear_in)
    with pytest.raises(ValueError, match="operator _once is declared twice"):
        declare.elementwise("_once(Tensor self) -> Tensor", lambda xp, x: -x, linear_in)
    assert operators()["_once"] is first
    del operators()["_once"], operators()["_once_"]


def test_what_a_program_changes_in_tensor_remains():
    if wengert.__compiled__:
        with pytest.raises(TypeError, match="immutable type"):
            wengert.Tensor.sort = None
        return
    run_alone("""
import wengert

wengert.Tensor.sort = lambda self: "mine"
del wengert.Tensor.msort
x = wengert.tensor([2.0, 1.0])
assert x.topk(1)[0] == 2
assert x.sort() == "mine" and not hasattr(x, "msort")
assert wengert.sort(x)[0].tolist() == [1.0, 2.0]
""")


def test_function_that_a_program_replaces_remains():
    run_alone("""
import wengert
from wengert.core.registry import operators

wengert.cat = "mine"
x = wengert.ones(2, requires_grad=True)
wengert.hstack([x, x]).sum().backward()
operators()
assert wengert.cat == "mine" and x.grad.tolist() == [2.0, 2.0]
""")


def test_unknown_name():
    with pytest.raises(AttributeError, match="wengert has no attribute 'nonsense'"):
        _ = wengert.nonsense
