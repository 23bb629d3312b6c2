"""What Python's operators and brackets do with numbers and keys that do not fit."""

import pytest


class TestOperators:
    @pytest.mark.parametrize("value", [1.0, 1j])
    def test_only_whole_numbers_and_truth_values_are_inverted(self, lib, value):
        with pytest.raises(TypeError, match="only implemented on integer and Boolean"):
            ~lib.tensor([value])

    def test_there_are_no_powers_modulo_a_number(self, lib):
        with pytest.raises(TypeError, match="unsupported operand type"):
            pow(lib.tensor([2]), 3, 5)
        assert pow(lib.tensor([2]), 3).tolist() == [8]

    def test_names_of_older_pythons(self, lib):
        x = lib.tensor([2.0])
        assert [x.__div__(4).item(), x.__rdiv__(4).item(), x.__rdiv__(x).item()] == [0.5, 2, 1]
        assert x.__idiv__(4) is x
        assert [x.item(), x.__long__(), x.__nonzero__()] == [0.5, 0, True]

    def test_items_are_not_deleted(self, lib):
        x = lib.arange(3)
        with pytest.raises(TypeError, match="does not support deleting items"):
            del x[0]


class TestFactor:
    """`alpha` of add and sub."""

    @pytest.mark.parametrize("name", ["add", "sub", "rsub"])
    def test_it_is_of_the_type_of_the_result(self, lib, name):
        function = getattr(lib, name)
        integers, floats = lib.tensor([1, 2]), lib.tensor([1.0, 2.0])
        for other in (1, integers):
            with pytest.raises(RuntimeError, match="must not be a floating point number"):
                function(integers, other, alpha=2.5)
        with pytest.raises(RuntimeError, match="Boolean alpha only supported"):
            function(integers, 1, alpha=True)
        with pytest.raises(RuntimeError, match="must not be a complex number"):
            function(integers, floats, alpha=1j)
        assert function(integers, floats, alpha=2.5).dtype == lib.float32

    def test_in_place(self, lib):
        x = lib.tensor([1, 2])
        with pytest.raises(RuntimeError, match="must not be a floating point number"):
            x.add_(1, alpha=2.5)
        assert x.tolist() == [1, 2]

    def test_it_wraps_around_or_is_refused(self, lib):
        byte = lib.tensor([3], dtype=lib.uint8)
        assert byte.add(1, alpha=-1).tolist() == [2]
        with pytest.raises(RuntimeError, match="cannot be converted to type uint8"):
            byte.add(1, alpha=300)


class TestNumbersThatDoNotFit:
    def test_limits(self, lib):
        small = lib.tensor([1, -100], dtype=lib.int8)
        for limits in ({"min": -1000, "max": 1000}, {"max": 300}, {"min": -129}):
            with pytest.raises(RuntimeError, match="cannot be converted to type int8"):
                small.clamp(**limits)
            with pytest.raises(RuntimeError, match="cannot be converted to type int8"):
                small.clamp_(**limits)
        assert small.clamp(-128, 127).tolist() == [1, -100]
        assert small.float().clamp(max=300).tolist() == [1, -100]
        assert lib.tensor([1.0]).clamp(max=float("inf")).tolist() == [1.0]

    def test_choices(self, lib):
        condition = lib.tensor([True, False])
        byte = lib.tensor([1, 2], dtype=lib.uint8)
        with pytest.raises(RuntimeError, match="cannot be converted to type uint8"):
            lib.where(condition, byte, 300)
        with pytest.raises(RuntimeError, match="cannot be converted to type float"):
            lib.where(condition, lib.ones(2), 1e300)
        assert lib.where(condition, byte, -1).tolist() == [1, 255]
        assert lib.where(condition, 1, 300).tolist() == [1, 300]

    def test_exponents(self, lib):
        byte = lib.tensor([2], dtype=lib.uint8)
        with pytest.raises(RuntimeError, match="cannot be converted to type uint8"):
            byte**300
        assert (byte**7).tolist() == [128]


class TestKeys:
    def test_nothing_can_be_taken_from_an_empty_dimension(self, lib):
        for x, key in ((lib.zeros(0), [0]), (lib.zeros(2, 0), (slice(None), [0]))):
            with pytest.raises(IndexError, match="out of bounds for dimension with size 0"):
                x[key]

    def test_a_scalar_has_no_slices(self, lib):
        with pytest.raises(IndexError, match="slice.. cannot be applied to a 0-dim tensor"):
            lib.tensor(5)[:]


class TestAssignedValues:
    @pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
    def test_one_value_for_one_mask_may_be_of_another_dtype(self, lib, shape):
        for dtype in (lib.int64, lib.float64):
            x = lib.arange(4.0)
            x[x > 1] = lib.full(shape, 7, dtype=dtype)
            assert x.tolist() == [0.0, 1.0, 7.0, 7.0] and x.dtype == lib.float32
            rows = lib.zeros(2, 2)
            rows[:, lib.tensor([True, False])] = lib.full(shape, 7, dtype=dtype)
            assert rows.tolist() == [[7.0, 0.0], [7.0, 0.0]]

    def test_it_must_fit(self, lib):
        x = lib.ones(3, dtype=lib.int8)
        for value in (300, float("nan")):
            with pytest.raises(RuntimeError, match="cannot be converted to type int8"):
                x[x == 1] = lib.tensor(value)
        assert x.tolist() == [1, 1, 1]

    def test_true_is_a_mask(self, lib):
        x = lib.zeros(2)
        x[True] = lib.tensor(3)
        assert x.tolist() == [3.0, 3.0]
        x[True] = lib.tensor([[1, 2]])
        assert x.tolist() == [1.0, 2.0]

    def test_gradients_have_the_dtype_of_the_value(self, lib):
        value = lib.ones(1, dtype=lib.float64, requires_grad=True)
        x = lib.arange(4.0)
        x[x > 1] = value
        x.sum().backward()
        assert value.grad.tolist() == [2.0] and value.grad.dtype == lib.float64

    def test_index_put(self, lib):
        x = lib.arange(4.0)
        assert x.index_put_((x > 1,), lib.tensor([7])).tolist() == [0.0, 1.0, 7.0, 7.0]
        with pytest.raises(RuntimeError, match="source and destination dtypes match"):
            x.index_put_((x > 1,), lib.tensor([7]), accumulate=True)

    @pytest.mark.parametrize("value", [7, [7], [7, 8]])
    def test_other_values_are_of_the_dtype_of_the_target(self, lib, value):
        for key in ([0, 2], ([0, 1], [1, 0]), (lib.tensor([True, True]), [0, 1])):
            x = lib.zeros(4, 2) if not isinstance(key, tuple) else lib.zeros(2, 2)
            with pytest.raises(RuntimeError, match="source and destination dtypes match"):
                x[key] = lib.tensor(value)


class TestArgumentsThatAreNoTensors:
    @pytest.mark.parametrize("wrong", [3, [1.0], None, "a"])
    @pytest.mark.parametrize("name", ["flatten", "reshape", "tile", "chunk", "numel", "is_complex"])
    def test_functions(self, lib, name, wrong):
        more = {"reshape": (1,), "tile": (1,), "chunk": 1}
        arguments = (more[name],) if name in more else ()
        with pytest.raises(TypeError, match=f"{name}.*must be Tensor, not {type(wrong).__name__}"):
            getattr(lib, name)(wrong, *arguments)

    def test_methods_and_keywords(self, lib):
        with pytest.raises(TypeError, match="'other' .*must be Tensor, not int"):
            lib.ones(2).view_as(3)
        with pytest.raises(TypeError, match="must be Tensor, not int"):
            lib.flatten(input=3)

    def test_attributes_that_are_missing_elsewhere(self, lib):
        class Unfinished(lib.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return cls.nothing

        with pytest.raises(AttributeError, match="nothing"):
            lib.flatten(Unfinished([1.0]))


class TestUnsignedNumbers:
    def test_whole_negative_numbers_wrap_around(self, lib):
        assert lib.tensor([-1], dtype=lib.uint8).tolist() == [255]
        assert lib.full((1,), -1, dtype=lib.uint8).tolist() == [255]
        assert lib.linspace(-17, 7, 4, dtype=lib.uint8).tolist() == [239, 161, 84, 7]

    def test_negative_fractions_are_refused(self, lib):
        byte = lib.ones(2, dtype=lib.uint8)

        def assign():
            byte[0] = -3.5

        for call in (
            lambda: lib.tensor(-1.3, dtype=lib.uint8),
            lambda: lib.tensor([[-0.2]], dtype=lib.uint8),
            lambda: lib.full((2,), -1.0, dtype=lib.uint8),
            lambda: byte.fill_(-8.0),
            lambda: byte.masked_fill(byte == 1, -1.5),
            assign,
        ):
            with pytest.raises(RuntimeError, match="cannot be converted to type uint8"):
                call()
        assert lib.tensor([-0.0], dtype=lib.uint8).tolist() == [0]

    @pytest.mark.parametrize("end", [float("nan"), float("inf"), 3e10])
    def test_ends_of_whole_numbers_are_finite(self, lib, end):
        with pytest.raises(RuntimeError, match="cannot be converted to type int"):
            lib.linspace(0, end, 4, dtype=lib.int32)

    def test_steps_are_numbers(self, lib):
        with pytest.raises(RuntimeError, match="step must be nonzero"):
            lib.arange(1, 5, float("nan"))
