"""Classes of tensors with constructors of their own: keywords, `__init__`, several bases."""

from abc import ABCMeta, abstractmethod

import pytest


def keyworded(lib):
    """A class whose `__new__` takes a keyword that no tensor knows, and without `__init__`."""

    class Keyworded(lib.Tensor):
        def __new__(cls, data, extra=None):
            return lib.Tensor._make_subclass(cls, data)

    return Keyworded


def test_keyword_of_its_own(lib):
    kind = keyworded(lib)
    x = kind(lib.ones(3), extra=3)
    assert type(x) is kind
    assert x.tolist() == [1.0, 1.0, 1.0]
    assert type(x * 2) is kind


def test_keyword_of_a_base(lib):
    class Derived(keyworded(lib)):
        pass

    assert type(Derived(lib.ones(1), extra=1)) is Derived


def test_keyword_of_a_wrapper(lib):
    class Wrapper(lib.Tensor):
        def __new__(cls, inner, *, note=None):
            return lib.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)

        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return NotImplemented

    assert tuple(Wrapper(lib.ones(2), note=4).shape) == (2,)


def test_keyword_with_as_subclass(lib):
    class Tagged(lib.Tensor):
        def __new__(cls, values, tag):
            made = lib.tensor(values).as_subclass(cls)
            made.tag = tag
            return made

    x = Tagged([1.0], tag="mass")
    assert (x.tolist(), x.tag) == ([1.0], "mass")


def test_both_constructors(lib):
    class Both(lib.Tensor):
        def __new__(cls, *args, extra=None):
            return super().__new__(cls, *args)

        def __init__(self, *args, extra=None):
            super().__init__()
            self.extra = extra

    x = Both([1.0, 2.0], extra=5)
    assert (x.tolist(), x.extra) == ([1.0, 2.0], 5)


def test_init_alone_gets_what_new_takes(lib):
    class Noted(lib.Tensor):
        def __init__(self, *args, extra=None):
            self.extra = extra

    assert Noted([1.0, 2.0]).extra is None
    assert Noted([1.0, 2.0]).tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match=r"new\(\) received an invalid combination of arguments"):
        Noted([1.0, 2.0], extra=5)


def test_tensors_have_no_init(lib):
    class Passing(lib.Tensor):
        def __init__(self, *args):
            super().__init__(*args)

    assert lib.Tensor.__init__ is object.__init__
    with pytest.raises(TypeError, match=r"object.__init__\(\) takes exactly one argument"):
        Passing([1.0])


class Counted:
    """A base that is no tensor, with an `__init__`."""

    def __init__(self, *args, **options):
        self.counted = len(args)
        super().__init__()


class Noting:
    """A base that is no tensor, with a `__new__` that takes a keyword away."""

    def __new__(cls, *args, note=None, **options):
        made = super().__new__(cls, *args, **options)
        made.note = note
        return made


@pytest.mark.parametrize("before", [True, False])
def test_init_of_another_base(lib, before):
    bases = (Counted, lib.Tensor) if before else (lib.Tensor, Counted)
    x = type("Mixed", bases, {})([1.0])
    assert (x.tolist(), x.counted) == ([1.0], 1)


def test_new_of_another_base(lib):
    class Mixed(Noting, lib.Tensor):
        pass

    x = Mixed([1.0], note="first")
    assert (x.tolist(), x.note) == ([1.0], "first")


def test_parameters_with_keywords_and_other_bases(lib):
    class Tagged(lib.nn.Parameter, Counted):
        def __new__(cls, data, tag=None):
            made = super().__new__(cls, data)
            made.tag = tag
            return made

    x = Tagged(lib.ones(2), tag="weights")
    assert (x.tag, x.counted, x.requires_grad) == ("weights", 1, True)
    assert lib.nn.Parameter.__init__ is object.__init__


def test_new_may_return_another_class(lib):
    class Plain(lib.Tensor):
        def __new__(cls, *args, **options):
            return lib.ones(2)

    assert type(Plain(1, 2, option=3)) is lib.Tensor


def test_new_of_tensor_itself(lib):
    assert lib.Tensor.__new__(lib.Tensor, [2.0]).tolist() == [2.0]
    assert lib.Tensor.__new__(lib.Tensor).tolist() == []


def test_data_and_sizes_by_keyword(lib):
    x = lib.ones(2, requires_grad=True) * 1
    assert lib.Tensor(data=[1.0, 2.0]).tolist() == [1.0, 2.0]
    assert tuple(lib.Tensor(size=(2, 3)).shape) == (2, 3)
    assert lib.Tensor(other=x).requires_grad


@pytest.mark.parametrize(
    "args, options",
    [
        (([1.0],), {"extra": 3}),
        (([1.0], 2), {}),
        ((), {"size": 2}),
        ((), {"other": 1}),
        ((), {"data": [1.0], "size": (1,)}),
        ((), {"dtype": None}),
    ],
)
def test_wrong_combinations(lib, args, options):
    with pytest.raises(TypeError, match=r"new\(\) received an invalid combination of arguments"):
        lib.Tensor(*args, **options)
    with pytest.raises(TypeError, match=r"new\(\) received an invalid combination of arguments"):
        type("Plain", (lib.Tensor,), {})(*args, **options)


class TestMetaclasses:
    """The class of Tensor is one that others can be joined with."""

    def test_joined_with_that_of_abstract_classes(self, lib):
        class Meta(type(lib.Tensor), ABCMeta):
            pass

        class Shape(lib.Tensor, metaclass=Meta):
            @abstractmethod
            def corners(self):
                raise NotImplementedError

        class Square(Shape):
            def corners(self):
                return 4

        square = Square([1.0, 2.0])
        assert square.corners() == 4
        assert type(square * 2) is Square
        assert isinstance(square, lib.Tensor) and not isinstance(2, Shape)

    def test_joined_with_that_of_parameters(self, lib):
        class Meta(type(lib.nn.Parameter), ABCMeta):
            pass

        class Named(lib.nn.Parameter, metaclass=Meta):
            pass

        assert isinstance(Named(lib.ones(2)), lib.nn.Parameter)

    def test_plain_tensors(self, lib):
        assert issubclass(type(lib.Tensor), type) and type(lib.Tensor) is not type
        assert not isinstance(1.0, lib.Tensor)
        assert type(type(lib.ones(2))) is type(lib.Tensor)
