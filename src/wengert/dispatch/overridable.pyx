"""Public functions and properties, which classes and modes may override.

A call looks at the types of its arguments and goes on to the function unless one of them, or a
mode, might override it. Whether a class does is found out once and known until the class changes.
`overridable.py` beside this file is the same interface without C.
"""
from cpython.object cimport PyObject

from ..core.state cimport Overriding

from ..core.classes import classes
from ..core.errors import DimensionError, argument_error, name_and_parameters
from ..core.state import overriding
from .presentation import Documentation, public_documentation, public_signature
from .torch_function import call_overridable as override_call
from .torch_function import takes_part

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        pass
    PyTypeObject* Py_TYPE(PyObject* value)
    bint PyType_HasFeature(PyTypeObject* kind, unsigned long feature)
    unsigned long Py_TPFLAGS_HEAPTYPE
    bint PyTuple_CheckExact(PyObject* value)
    bint PyList_CheckExact(PyObject* value)
    Py_ssize_t PyTuple_GET_SIZE(PyObject* value)
    Py_ssize_t PyList_GET_SIZE(PyObject* value)
    PyObject* PyTuple_GET_ITEM(PyObject* value, Py_ssize_t i)
    PyObject* PyList_GET_ITEM(PyObject* value, Py_ssize_t i)
    ctypedef PyObject* const_items "PyObject* const"
    Py_ssize_t PyVectorcall_NARGS(size_t count)
    PyObject* PyObject_Vectorcall(
        PyObject* function, const_items* args, size_t count, PyObject* names)
    object PyMethod_New(object function, object instance)
    bint PyErr_ExceptionMatches(object kind)
    void Py_INCREF(object value)

cdef extern from *:
    """
    /* Lets a type be called without a tuple of arguments, as functions and methods are. */
    static void wengert_call_by_vector(PyTypeObject* type, Py_ssize_t offset) {
        type->tp_vectorcall_offset = offset;
        type->tp_call = PyVectorcall_Call;
        type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR;
        PyType_Modified(type);
    }
    """
    void wengert_call_by_vector(type cls, Py_ssize_t offset)

cdef extern from *:
    """
    /* A number that changes with every change of a class; 0 if the interpreter has given none. */
    static unsigned int wengert_version_of(PyTypeObject* type) {
    #ifdef Py_TPFLAGS_VALID_VERSION_TAG
        if (!PyType_HasFeature(type, Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
    #endif
        return type->tp_version_tag;
    }
    """
    unsigned int wengert_version_of(PyTypeObject* kind) noexcept

cdef struct Decision:
    PyTypeObject* kind
    unsigned int version
    bint takes_part

cdef enum:
    DECISIONS = 256

cdef Overriding shared = overriding
# Errors of functions that a call can say more about.
cdef tuple EXPLAINED = (AttributeError, DimensionError)
# What was found out of classes, each in the place that its address gives.
cdef Decision decisions[DECISIONS]


cdef bint decide(PyTypeObject* kind, Decision* known) noexcept:
    """Find out whether a class takes part in overriding, and note it."""
    cdef bint found = True
    try:
        found = takes_part(<object><PyObject*>kind)
    except BaseException:  # the call itself will meet the error
        return True
    known.kind, known.version, known.takes_part = kind, wengert_version_of(kind), found
    return found


cdef inline bint has_open_type(PyObject* value) noexcept:
    """Whether a class statement made the type of a value, and it takes part in overriding."""
    cdef PyTypeObject* kind = Py_TYPE(value)
    if not PyType_HasFeature(kind, Py_TPFLAGS_HEAPTYPE):
        return False
    cdef Decision* known = &decisions[(<size_t>kind >> 4) % DECISIONS]
    if known.kind is kind and known.version and known.version == wengert_version_of(kind):
        return known.takes_part
    return decide(kind, known)


cdef inline bint may_override(PyObject* value) noexcept:
    cdef Py_ssize_t i
    if PyTuple_CheckExact(value):
        for i in range(PyTuple_GET_SIZE(value)):
            if has_open_type(PyTuple_GET_ITEM(value, i)):
                return True
        return False
    if PyList_CheckExact(value):
        for i in range(PyList_GET_SIZE(value)):
            if has_open_type(PyList_GET_ITEM(value, i)):
                return True
        return False
    return has_open_type(value)


cdef int raise_pending() except -1:
    """Raise the exception that a function of C has left."""
    return -1


cdef PyObject* call_overridable(
    PyObject* callable, const_items* args, size_t count, PyObject* names
) except NULL:
    cdef Overridable self = <Overridable>callable
    cdef Py_ssize_t i, positional = PyVectorcall_NARGS(count), total = positional
    if names is not NULL:
        total += PyTuple_GET_SIZE(names)
    cdef PyObject* out
    cdef object failure = None
    if not shared.modes:
        for i in range(total):
            if may_override(args[i]):
                break
        else:
            out = PyObject_Vectorcall(<PyObject*>self.function, args, count, names)
            if out is not NULL or not PyErr_ExceptionMatches(EXPLAINED):
                return out
            try:
                raise_pending()
            except (AttributeError, DimensionError) as error:
                failure = error
    cdef tuple given = tuple([<object>args[i] for i in range(positional)])
    cdef dict keywords = {}
    for i in range(positional, total):
        keywords[<object>PyTuple_GET_ITEM(names, i - positional)] = <object>args[i]
    if failure is not None:
        raise argument_error(failure, *name_and_parameters(self.function), given, keywords) from None
    cdef object result = override_call(self.public, self.function, given, keywords)
    Py_INCREF(result)
    return <PyObject*>result


cdef class Overridable:
    """A public function. Overrides are told of `public`; without any, `function` is called."""

    def __cinit__(self, object function, object public=None, str module="wengert", str name=""):
        self.vectorcall = <void*>call_overridable
        self.function = function
        self.public = self if public is None else public
        name_as(self, function, module, name or function.__name__)

    def __get__(self, instance, owner):
        return self if instance is None else PyMethod_New(self, instance)

    @property
    def __signature__(self):
        return public_signature(self.function)

    def __repr__(self):
        return f"<function {self.__qualname__}>"

    def __reduce__(self):
        return self.__qualname__


cdef Overridable _sample = Overridable(len)
wengert_call_by_vector(Overridable, <char*>&_sample.vectorcall - <char*><PyObject*>_sample)


classes.attach(
    Overridable, "__doc__",
    Documentation(
        Overridable.__doc__, lambda each: public_documentation(each.__name__, each.function)
    ),
)


cdef class OverridableProperty:
    """A property; overrides are told of its `__get__`, `__set__` and `__delete__`."""

    def __cinit__(self, object source, str name):
        self.fget, self.fset, self.fdel = source.fget, source.fset, source.fdel
        name_as(self, source, "wengert.tensor", name)
        setattr(self, "__doc__", source.__doc__)

    def __get__(self, instance, owner):
        if instance is None:
            return self
        if shared.modes or has_open_type(<PyObject*>instance):
            return override_call(self.__get__, self.fget, (instance,), {})
        return self.fget(instance)

    def __set__(self, instance, value):
        if self.fset is None:
            raise AttributeError(f"attribute '{self.__name__}' of Tensor objects is not writable")
        if shared.modes or may_override(<PyObject*>instance) or may_override(<PyObject*>value):
            override_call(self.__set__, self.fset, (instance, value), {})
        else:
            self.fset(instance, value)

    def __delete__(self, instance):
        if self.fdel is None:
            raise AttributeError(f"attribute '{self.__name__}' of Tensor objects cannot be deleted")
        if shared.modes or has_open_type(<PyObject*>instance):
            override_call(self.__delete__, self.fdel, (instance,), {})
        else:
            self.fdel(instance)

    def __repr__(self):
        return f"<attribute '{self.__name__}' of 'wengert.Tensor' objects>"


cdef name_as(object wrapper, object wrapped, str module, str name):
    """Let a wrapper tell of itself what the wrapped function would."""
    setattr(wrapper, "__wrapped__", wrapped)
    setattr(wrapper, "__module__", module)
    setattr(wrapper, "__qualname__", name)
    setattr(wrapper, "__name__", name.rpartition(".")[2])
