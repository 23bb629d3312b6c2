"""What compiled classes refuse to Python code: class attributes, fields, making without `__init__`.

`classes.pyx` beside this file is the compiled form; an extension module wins at import.
"""

from __future__ import annotations

import ctypes
from types import MethodType
from typing import Any

#: Whether this is the compiled package.
COMPILED = False


class Classes:
    """Changes of classes and of their instances; one instance, `classes`."""

    #: The method that a function is on an instance.
    method = MethodType
    #: What `object.__setattr__` does, which compiled classes may not be given.
    set_attribute = staticmethod(object.__setattr__)

    def name_function(self, operator: Any, name: str) -> None:
        """Let an operator have the names of a function; a compiled one has __getattr__ for them."""
        operator.__name__ = operator.__qualname__ = name

    def attach(self, cls: type, name: str, value: object) -> None:
        """Set a class attribute; unlike setattr it reaches compiled classes too."""
        setattr(cls, name, value)

    def give_metaclass(self, cls: type, metaclass: type) -> None:
        """Make a class an instance of a metaclass without fields, as its statement cannot."""
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(metaclass))
        place = id(cls) + object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
        ctypes.c_void_p.from_address(place).value = id(metaclass)
        ctypes.pythonapi.PyType_Modified(ctypes.py_object(cls))

    def hide_init(self, cls: type) -> None:
        """Take `__init__` from a class, of which subclasses made from now on see nothing."""
        if "__init__" in vars(cls):  # it is gone already after a reload
            del cls.__init__  # type: ignore[misc]

    def change_class(self, target: Any, cls: type) -> None:
        """Make an instance one of a subclass without fields, which a class statement has made."""
        target.__class__ = cls


make = object.__new__  # an instance without a call of __init__

classes = Classes()
