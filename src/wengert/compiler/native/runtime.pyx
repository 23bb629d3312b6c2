# cython: boundscheck=False, wraparound=False
"""Runs tables of steps, and whole calls of programs that consist of nothing else.

`runtime.py` beside this file is the interface without C.
"""
cimport cython
cimport numpy as cnp
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF
from libc.stdint cimport int64_t
from libc.string cimport memcmp, memcpy

from ...autograd.function_node cimport FunctionNode
from ...backends.matrices cimport blas_alone, blas_together
from ...core.collector cimport Collector
from ...core.pool cimport split
from ...core.state cimport AnomalyMode, ThreadState, thread_state
from ...core.tensor cimport Tensor, requires_of, wrap_as
from ...tape.node cimport edge_target, new_node
from ...tape.plans cimport GradientPlan
from ...tape.saved cimport save, save_output, unpack_item

from ...core.collector import collector
from ...core.dtypes import get_default_dtype
from ...core.state import anomaly
from .rounds import Runner

cnp.import_array()

cdef extern from "steps.h":
    ctypedef void (*wengert_kernel)(
        char** bases, const int64_t* slots, int64_t lo, int64_t hi, int64_t part) noexcept nogil
    ctypedef struct wengert_step:
        wengert_kernel function
        const int64_t* slots
        int64_t rows, parts
    ctypedef struct wengert_job:
        char** bases
        const wengert_step* step
    void wengert_chunk(void* data, int64_t part) noexcept nogil

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(
        type subtype, cnp.dtype descr, int ndim, const cnp.npy_intp* dims,
        const cnp.npy_intp* strides, void* data, int flags, PyObject* obj)

cdef extern from "Python.h":
    ctypedef PyObject* const_items "PyObject* const"
    Py_ssize_t PyVectorcall_NARGS(size_t count)
    Py_ssize_t PyTuple_GET_SIZE(PyObject* value)
    PyObject* PyTuple_GET_ITEM(PyObject* value, Py_ssize_t i)
    PyObject* PyObject_Vectorcall(
        PyObject* function, const_items* args, size_t count, PyObject* names)

cdef extern from *:
    """
    /* Lets instances of a class be called without a tuple of arguments. */
    static void wengert_enter_by_vector(PyTypeObject* type, Py_ssize_t offset) {
        type->tp_vectorcall_offset = offset;
        type->tp_call = PyVectorcall_Call;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
        PyType_Modified(type);
    }
    """
    void wengert_enter_by_vector(type cls, Py_ssize_t offset)

cdef enum:
    MOST_DIMENSIONS = 16
    MOST_FRAMES = 4  # that wait for the next calls

cdef AnomalyMode anomaly_mode = anomaly
cdef Collector shown_to = collector


cdef struct Header:
    PyObject* dtype
    int ndim
    int base
    int place
    cnp.npy_intp shape[MOST_DIMENSIONS]
    cnp.npy_intp strides[MOST_DIMENSIONS]


cdef void run_table(char** bases, size_t records, int64_t begin, int64_t end) noexcept nogil:
    """Run steps; threads share the chunks of those that have several."""
    cdef int64_t i
    cdef wengert_job job
    job.bases = bases
    for i in range(begin, end):
        job.step = <wengert_step*>records + i
        if job.step.parts > 1:
            split(wengert_chunk, &job, job.step.parts)
        else:
            job.step.function(bases, job.step.slots, 0, job.step.rows, 0)


cdef void run_steps(
    char** bases, size_t records, int64_t begin, int64_t end, bint uses_blas
) noexcept nogil:
    """Run steps, with one thread for BLAS: its products are split here, where threads share."""
    cdef bint alone = uses_blas and blas_alone()
    run_table(bases, records, begin, end)
    if alone:
        blas_together()


# A block within a step has a table of its own.
Runner.address = <size_t>&run_table


def address_of(cnp.ndarray array):
    """Where the first element of an array is."""
    return <size_t>cnp.PyArray_DATA(array)


cdef class Runtime:
    """What runs tables; one instance, `runtime`."""

    def run(self, size_t bases, size_t records, int64_t begin, int64_t end, bint uses_blas):
        """Run the steps from one number to another."""
        with nogil:
            run_steps(<char**>bases, records, begin, end, uses_blas)


cdef class Caller:
    """One call of a program without other steps: checks, memory for results, and the native call.

    `inputs` and `outputs` are pairs of an array like those to come, and the number of its base.
    """

    cdef Header* inputs
    cdef Header* outputs
    cdef int input_count, output_count
    cdef size_t records
    cdef int64_t steps
    cdef bint uses_blas
    cdef object make_frame, keep
    cdef list frames

    def __cinit__(self):
        self.inputs = self.outputs = NULL

    def __init__(
        self, list inputs, list outputs, make_frame, size_t records, int64_t steps, bint uses_blas
    ):
        self.uses_blas = uses_blas
        self.input_count, self.output_count = len(inputs), len(outputs)
        self.inputs = <Header*>PyMem_Malloc(sizeof(Header) * (self.input_count + 1))
        self.outputs = <Header*>PyMem_Malloc(sizeof(Header) * (self.output_count + 1))
        if not self.inputs or not self.outputs:
            raise MemoryError
        for i, (array, base) in enumerate(inputs):
            note(&self.inputs[i], array, base)
        for i, (array, base) in enumerate(outputs):
            note(&self.outputs[i], array, base)
        self.make_frame, self.records, self.steps = make_frame, records, steps
        self.frames = []
        self.keep = ([a.dtype for a, _ in inputs], [a.dtype for a, _ in outputs])

    def __dealloc__(self):
        PyMem_Free(self.inputs)
        PyMem_Free(self.outputs)

    cpdef bint fits(self, list inputs):
        """Whether the arrays of tensors are of the kind that the code was made for."""
        cdef int i
        cdef Tensor t
        cdef Header* header
        if len(inputs) != self.input_count:
            return False
        for i in range(self.input_count):
            if not isinstance(inputs[i], Tensor):
                return False
            t = <Tensor>inputs[i]
            if not cnp.PyArray_CheckExact(t.array):
                return False
            header = &self.inputs[i]
            if not matches(header, <cnp.ndarray>t.array):
                return False
        return True

    cpdef list call(self, list inputs):
        """The results for tensors that fit; None where an index was out of range."""
        cdef int i
        cdef Tensor t
        cdef Header* header
        cdef cnp.ndarray array
        cdef ThreadState state = thread_state()
        frame = self.frames.pop() if self.frames else self.make_frame()
        cdef char** bases = <char**><size_t>frame.address
        for i in range(self.input_count):
            header = &self.inputs[i]
            if header.base >= 0:
                t = <Tensor>inputs[i]
                bases[header.base] = <char*>cnp.PyArray_DATA(<cnp.ndarray>t.array)
        results = []
        for i in range(self.output_count):
            header = &self.outputs[i]
            Py_INCREF(<object>header.dtype)
            array = PyArray_NewFromDescr(
                cnp.ndarray, <cnp.dtype>header.dtype, header.ndim, header.shape, NULL, NULL, 0, NULL
            )
            bases[header.base] = <char*>cnp.PyArray_DATA(array)
            results.append(wrap_as(array, state.inference))
        with nogil:
            run_steps(bases, self.records, 0, self.steps, self.uses_blas)
        if (<int64_t*>bases[0])[0]:
            return None
        if len(self.frames) < MOST_FRAMES:
            self.frames.append(frame)
        return results


@cython.final
cdef class Recording:
    """How a call is recorded: one node, whose outputs are the first of the program's.

    `order` says where the outputs are among the results of native code, `differentiable` which of
    the first have gradients, `kept` which outputs the reverse needs. `needs` and `flags` tell of
    each argument of the node whether it requires grad and whether it is a tensor, `call` is what
    its backward knows of the call.
    """

    cdef GradientPlan plan
    cdef list order, differentiable, kept
    cdef tuple needs, flags
    cdef object call

    def __init__(self, plan, order, differentiable, kept, needs, flags, call):
        self.plan, self.order, self.kept, self.call = plan, order, kept, call
        self.differentiable, self.needs, self.flags = differentiable, needs, flags

    cdef list outputs(self, ThreadState state, list inputs, list results):
        """The outputs of the graph, as those of a new node."""
        cdef Py_ssize_t i, count = len(self.differentiable)
        cdef bint any_number = False
        cdef Tensor t
        cdef FunctionNode node
        cdef list targets = [], numbers = [], found = [], metas = [], saved = []
        for i in range(len(inputs)):
            t = <Tensor>inputs[i]
            if self.needs[i + 1]:
                targets.append(edge_target(t))
                numbers.append(t.output_index)
                any_number = any_number or t.output_index != 0
            else:
                targets.append(None)
                numbers.append(0)
        for i in range(count):
            found.append(results[<Py_ssize_t>self.order[i]])
        node = <FunctionNode>new_node(
            self.plan, state, (<Tensor>found[0]).array, tuple(targets),
            tuple(numbers) if any_number else None
        )
        node.needs_input_grad, node.tensor_flags = self.needs, self.flags
        node.argument_count, node.keeps_undefined = len(self.needs), True
        for i in range(count):
            t = <Tensor>found[i]
            if self.differentiable[i]:
                t.node, t.output_index, t.needs_grad = node, i, True
            if node.shown:
                shown_to.show(t)
            if count > 1:
                metas.append((t.array.shape, t.array.dtype))
        if count > 1:
            node.outputs_meta = metas
        for i in range(len(inputs)):
            saved.append(save(inputs[i], state))
        for i in range(len(self.kept)):
            t = <Tensor>results[<Py_ssize_t>self.kept[i]]
            saved.append(save(t, state) if t.node is None else save_output(t, state))
        node.saved = tuple(saved)
        if not node.shown:
            shown_to.hide(node.saved)
        node.call = self.call
        return found


@cython.final
cdef class Reversal:
    """The short way of a backward that is not recorded, for arrays as in an earlier one.

    `taken` are the outputs whose gradients it takes, `read` the saved tensors, and `found` says of
    each input where its gradient is among the results of native code, or -1.
    """

    cdef Caller caller
    cdef list taken, read, found

    def __init__(self, caller, taken, read, found):
        self.caller, self.taken, self.read, self.found = caller, taken, read, found

    def gradients(self, FunctionNode node, tuple grads, object long_way):
        """What the backward of a node returns; None if it has no saved tensors or not all of these
        gradients. What does not fit goes the long way, with gradients and what was saved."""
        cdef list inputs = [], results = None
        cdef Py_ssize_t i
        if type(node.saved) is not tuple:
            return None
        for i in self.taken:
            if grads[i] is None:
                return None
            inputs.append(grads[i])
        for i in self.read:
            inputs.append(unpack_item((<tuple>node.saved)[i], node))
        if self.caller.fits(inputs):
            results = self.caller.call(inputs)
        if results is None:
            return long_way(inputs[:len(self.taken)], inputs[len(self.taken):])
        inputs = [None]
        for i in self.found:
            inputs.append(None if i < 0 else results[i])
        return tuple(inputs)


@cython.final
cdef class Lane:
    """The short way of a compiled function: calls with plain tensors.

    `kinds` says of each argument whether it requires grad: 0, 1, or 2 for a leaf that does;
    `needs` says so of what the function has from elsewhere. `recording` makes calls that are
    recorded, None stands for those that are not. Results are put together by `finish`, or are the
    one of number `only`. It declines, with NotImplemented, whatever is not exactly as in the call
    that it was made for.
    """

    cdef Caller caller
    cdef Py_ssize_t arguments
    cdef int only
    cdef list captured, arrays, kinds, needs
    cdef object holds, default_dtype, finish, compilation
    cdef Recording recording
    cdef bint grad_enabled, inference, anomaly

    def __init__(
        self, caller, kinds, captured, needs, modes, holds, finish, only, compilation, recording
    ):
        self.caller, self.arguments, self.captured = caller, len(kinds), captured
        self.kinds, self.needs, self.recording = kinds, needs, recording
        self.arrays = [(<Tensor>t).array for t in captured]
        self.grad_enabled, self.inference, self.default_dtype, self.anomaly = modes
        self.holds, self.finish, self.compilation = holds, finish, compilation
        self.only = only

    cdef object take(self, PyObject** args, Py_ssize_t count):
        """The function's result, or NotImplemented."""
        cdef Py_ssize_t i, j
        cdef int kind
        cdef Tensor t
        cdef ThreadState state = thread_state()
        cdef list inputs, results
        if (
            count != self.arguments
            or state.layers
            or state.grad_enabled != self.grad_enabled
            or state.inference != self.inference
            or anomaly_mode.enabled != self.anomaly
            or get_default_dtype() is not self.default_dtype
        ):
            return NotImplemented
        inputs = []
        for i in range(count):
            if type(<object>args[i]) is not Tensor:
                return NotImplemented
            t = <Tensor>args[i]
            if t.view_meta is not None or t.cold is not None:
                return NotImplemented
            kind = 0 if not t.needs_grad else 2 if t.node is None else 1
            if kind != <int>self.kinds[i]:
                return NotImplemented
            for j in range(i):
                if args[j] is args[i]:
                    return NotImplemented
            inputs.append(t)
        for i in range(len(self.captured)):
            t = <Tensor>self.captured[i]
            if t.array is not self.arrays[i] or requires_of(t) != <bint>self.needs[i]:
                return NotImplemented
            inputs.append(t)
        if not self.caller.fits(inputs) or not self.holds():
            return NotImplemented
        if self.recording is not None and state.saved_hooks:
            return NotImplemented
        results = self.caller.call(inputs)
        if results is None:
            return NotImplemented
        if self.recording is not None:
            results = self.recording.outputs(state, inputs, results)
        self.compilation.calls += 1
        return results[self.only] if self.only >= 0 else self.finish(results)


cdef PyObject* enter(
    PyObject* callable, const_items* args, size_t count, PyObject* names
) except NULL:
    if (<Entry>callable).plain is not None:
        return PyObject_Vectorcall(<PyObject*>(<Entry>callable).plain, args, count, names)
    return enter_compiled(<Entry>callable, <PyObject**>args, count, names)


cdef PyObject* enter_compiled(
    Entry self, PyObject** items, size_t count, PyObject* names
) except NULL:
    cdef Py_ssize_t i, positional = PyVectorcall_NARGS(count)
    cdef dict keywords
    cdef object result
    # Held for the call: another thread may replace it while the code runs without the interpreter.
    cdef Lane lane = self.lane
    if names is NULL or PyTuple_GET_SIZE(names) == 0:
        if lane is not None:
            result = lane.take(items, positional)
            if result is not NotImplemented:
                Py_INCREF(result)
                return <PyObject*>result
    keywords = {}
    if names is not NULL:
        for i in range(PyTuple_GET_SIZE(names)):
            keywords[<object>PyTuple_GET_ITEM(names, i)] = <object>items[positional + i]
    result = self.take(tuple([<object>items[i] for i in range(positional)]), keywords)
    Py_INCREF(result)
    return <PyObject*>result


cdef class Entry:
    """What Python calls: a `lane` if one serves the call, else the method `take` of a subclass with
    the arguments. Once `plain` is set, that is called in place of everything else."""

    cdef void* vectorcall
    cdef public object plain
    cdef public object lane

    def __cinit__(self, *args, **kwargs):
        self.vectorcall = <void*>enter

    def __call__(self, *args, **kwargs):
        return self.take(args, kwargs) if self.plain is None else self.plain(*args, **kwargs)


def by_vector(type cls):
    """Let instances of a subclass of Entry be called without detours."""
    cdef Entry sample = Entry()
    wengert_enter_by_vector(cls, <char*>&sample.vectorcall - <char*><PyObject*>sample)
    return cls


cdef bint matches(Header* header, cnp.ndarray array) noexcept:
    cdef int ndim = header.ndim
    return (
        <PyObject*>cnp.PyArray_DESCR(array) == header.dtype
        and cnp.PyArray_NDIM(array) == ndim
        and memcmp(cnp.PyArray_DIMS(array), header.shape, ndim * sizeof(cnp.npy_intp)) == 0
        and memcmp(cnp.PyArray_STRIDES(array), header.strides, ndim * sizeof(cnp.npy_intp)) == 0
    )


cdef int note(Header* header, cnp.ndarray array, int base) except -1:
    cdef int ndim = cnp.PyArray_NDIM(array)
    if ndim > MOST_DIMENSIONS:
        raise ValueError(f"more than {MOST_DIMENSIONS} dimensions")
    header.dtype = <PyObject*>cnp.PyArray_DESCR(array)
    header.ndim, header.base = ndim, base
    memcpy(header.shape, cnp.PyArray_DIMS(array), ndim * sizeof(cnp.npy_intp))
    memcpy(header.strides, cnp.PyArray_STRIDES(array), ndim * sizeof(cnp.npy_intp))
    return 0


runtime = Runtime()
