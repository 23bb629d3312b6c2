"""Names that programs touch: cuda, backends, settings, amp and testing, against PyTorch's."""

import functools
import importlib

import pytest

import wengert


class TestCuda:
    def test_questions_are_answered(self, lib):
        assert lib.cuda.is_available() is False and lib.cuda.device_count() == 0
        assert not lib.cuda.is_initialized() and not lib.cuda.is_bf16_supported()
        assert lib.cuda.memory_allocated() == lib.cuda.max_memory_allocated() == 0
        assert lib.cuda.get_rng_state_all() == lib.cuda.get_arch_list() == []
        for name in ("manual_seed", "manual_seed_all"):
            assert getattr(lib.cuda, name)(3) is None
        assert lib.cuda.empty_cache() is None

    def test_ways_to_compute_attention(self, lib):
        attention = importlib.import_module(f"{lib.__name__}.nn.attention")
        q = lib.ones(1, 2, 3)
        for choice in (attention.SDPBackend.MATH, [attention.SDPBackend.FLASH_ATTENTION] * 2):
            with attention.sdpa_kernel(choice):
                if choice is attention.SDPBackend.MATH:
                    assert lib.nn.functional.scaled_dot_product_attention(q, q, q).tolist()
        with pytest.raises(AssertionError, match="Backend must be an instance of SDPBackend"):
            with attention.sdpa_kernel(3):
                pass
        assert str(attention.SDPBackend.MATH) == "SDPBackend.MATH"
        cuda = lib.backends.cuda
        assert cuda.flash_sdp_enabled() and cuda.math_sdp_enabled()
        cuda.enable_math_sdp(False)
        assert not cuda.math_sdp_enabled()
        cuda.enable_math_sdp(True)

    def test_accelerators(self, lib):
        assert not lib.accelerator.is_available() and lib.accelerator.device_count() == 0
        assert lib.accelerator.current_accelerator(check_available=True) is None

    @pytest.mark.parametrize("name", ["current_device", "get_device_name", "synchronize", "init"])
    def test_what_needs_a_device_raises(self, lib, name):
        with pytest.raises(AssertionError, match="not compiled with CUDA enabled"):
            getattr(lib.cuda, name)()

    def test_others_are_missing(self):
        with pytest.raises(AttributeError, match="wengert.cuda has no attribute 'nothing'"):
            wengert.cuda.nothing
        with pytest.raises(AssertionError, match="no CUDA devices"):
            wengert.cuda.set_rng_state_all([1])


class TestSettings:
    def test_backends(self, lib):
        assert lib.backends.cudnn.is_available() is False and lib.backends.cudnn.version() is None
        assert not lib.backends.mps.is_available() and not lib.backends.cuda.is_built()
        assert lib.backends.cudnn.benchmark is False
        lib.backends.cudnn.deterministic = True
        assert lib.backends.cudnn.deterministic is True
        lib.backends.cudnn.deterministic = False
        assert lib.backends.cuda.matmul.allow_tf32 is False

    def test_flags(self):
        cudnn = wengert.backends.cudnn
        with cudnn.flags(enabled=False, benchmark=True):
            assert (cudnn.enabled, cudnn.benchmark) == (False, True)
        assert (cudnn.enabled, cudnn.benchmark) == (True, False)
        with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
            with cudnn.flags(speed=1):
                pass
        for name in ("mkl", "mkldnn", "openmp"):
            assert getattr(wengert.backends, name).is_available() is False
        with pytest.raises(AttributeError, match="wengert.backends has no attribute 'nothing'"):
            wengert.backends.nothing

    def test_remembered(self, lib):
        threads = lib.get_num_threads()
        lib.set_num_threads(1)
        assert lib.get_num_threads() == 1
        lib.set_num_threads(threads)
        with pytest.raises(RuntimeError, match="expects a positive integer"):
            lib.set_num_threads(0)
        with pytest.raises(RuntimeError, match="set_num_threads expects an int, but got float"):
            lib.set_num_threads(1.5)
        assert lib.get_float32_matmul_precision() == "highest"
        lib.set_float32_matmul_precision("high")
        assert lib.get_float32_matmul_precision() == "high"
        lib.set_float32_matmul_precision("highest")
        lib.use_deterministic_algorithms(True, warn_only=True)
        assert lib.are_deterministic_algorithms_enabled()
        assert lib.is_deterministic_algorithms_warn_only_enabled()
        lib.use_deterministic_algorithms(False)
        assert not lib.are_deterministic_algorithms_enabled()
        assert lib.get_num_interop_threads() >= 1

    def test_wrong_settings(self):
        with pytest.raises(RuntimeError, match="is not one of 'highest', 'high', or 'medium'"):
            wengert.set_float32_matmul_precision("low")
        wengert.set_num_interop_threads(2)
        assert wengert.get_num_interop_threads() == 2
        wengert.set_num_interop_threads(1)


class TestAutocast:
    def test_precision_of_functions(self, lib):
        a, b = lib.ones(2, 3), lib.ones(3, 2)
        layer = lib.nn.Linear(3, 2)
        with lib.autocast("cpu"):
            assert lib.is_autocast_enabled("cpu") and not lib.is_autocast_enabled("cuda")
            assert lib.get_autocast_dtype("cpu") == lib.bfloat16
            for product in (a @ b, lib.mm(a, b), a.matmul(b), layer(a), lib.einsum("ij,jk", a, b)):
                assert product.dtype == lib.bfloat16
            assert (a + a).dtype == lib.float32
            assert (a @ b + 1).dtype == lib.bfloat16
            assert lib.nn.functional.mse_loss(a @ b, lib.zeros(2, 2)).dtype == lib.float32
            assert (a.double() @ b.double()).dtype == lib.float64
            assert lib.cat([a @ b, a], 1).dtype == lib.float32
            assert (a @ b).prod(0).dtype == lib.float32
            with lib.autocast("cpu", enabled=False):
                assert (a @ b).dtype == lib.float32 and not lib.is_autocast_enabled("cpu")
            with lib.autocast("cpu", dtype=lib.float16):
                assert (a @ b).dtype == lib.float16
            assert (a @ b).dtype == lib.bfloat16
        assert (a @ b).dtype == lib.float32 and not lib.is_autocast_enabled("cpu")

    def test_gradients_have_the_type_of_the_parameters(self, lib):
        layer = lib.nn.Linear(3, 2)
        with lib.amp.autocast("cpu"):
            loss = layer(lib.ones(4, 3)).float().pow(2).sum()
        loss.backward()
        assert layer.weight.grad.dtype == layer.bias.grad.dtype == lib.float32
        assert layer.weight.grad.abs().sum() > 0

    def test_decorator_and_reuse(self, lib):
        @lib.autocast("cpu", lib.bfloat16)
        def product(a):
            return a @ a

        assert product(lib.ones(2, 2)).dtype == lib.bfloat16
        mode = lib.autocast("cpu")
        for _ in range(2):
            with mode:
                assert (lib.ones(2, 2) @ lib.ones(2, 2)).dtype == lib.bfloat16
        with pytest.raises(ZeroDivisionError), mode:
            raise ZeroDivisionError
        assert not lib.is_autocast_enabled("cpu")

    def test_what_there_is_not(self, lib):
        with pytest.warns(UserWarning, match="CUDA is not available"):
            mode = lib.autocast("cuda")
        with mode:
            assert (lib.ones(2, 2) @ lib.ones(2, 2)).dtype == lib.float32
        with pytest.warns(UserWarning, match="target dtype is not supported"):
            lib.autocast("cpu", lib.float64)
        with pytest.raises(ValueError, match="Expected `device_type` of type `str`"):
            lib.autocast(3)
        with pytest.raises(RuntimeError, match="device.type"):
            lib.autocast("teapot")

    def test_compiled_functions_and_transforms(self):
        """A graph that was made in one precision is not run in the other."""
        a = wengert.ones(2, 2)
        for first in (True, False):
            product = wengert.compile(lambda a: wengert.nn.functional.linear(a, a))
            for enabled in (first, not first, first):
                with wengert.autocast("cpu", enabled=enabled):
                    kind = wengert.bfloat16 if enabled else wengert.float32
                    assert product(a).dtype is kind
            assert product(a).dtype is wengert.float32
        square = wengert.autocast("cpu")(lambda x: x @ x)
        assert wengert.vmap(square)(wengert.ones(3, 2, 2)).dtype is wengert.bfloat16
        gradient = wengert.func.grad(lambda x: square(x).float().sum())(a)
        assert gradient.dtype is wengert.float32 and gradient.tolist() == [[4, 4], [4, 4]]

    def test_custom_functions(self, lib):
        class Product(lib.autograd.Function):
            @staticmethod
            @lib.amp.custom_fwd(device_type="cpu", cast_inputs=lib.float32)
            def forward(ctx, x):
                ctx.save_for_backward(x)
                assert x.dtype == lib.float32 and not lib.is_autocast_enabled("cpu")
                return x @ x

            @staticmethod
            @lib.amp.custom_bwd(device_type="cpu")
            def backward(ctx, g):
                (x,) = ctx.saved_tensors
                return g @ x.t() + x.t() @ g

        x = lib.ones(2, 2, dtype=lib.bfloat16, requires_grad=True)
        with lib.autocast("cpu"):
            out = Product.apply(x)
        assert out.dtype == lib.float32
        out.sum().backward()
        assert x.grad.tolist() == [[4, 4], [4, 4]]
        assert Product.apply(lib.ones(2, 2)).dtype == lib.float32


class TestGradScaler:
    def training(self, lib):
        p = lib.nn.Parameter(lib.tensor([1.0, 2.0]))
        return p, lib.optim.SGD([p], lr=0.5), lib.amp.GradScaler("cpu", 8.0, growth_interval=2)

    def test_steps(self, lib):
        p, optimizer, scaler = self.training(lib)
        values = []
        for factor in (1.0, 2.0, float("inf"), 1.0):
            optimizer.zero_grad()
            scaler.scale((p * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            values.append((p.tolist(), scaler.get_scale()))
        assert values == [([0.5, 1.5], 8), ([-0.5, 0.5], 16), ([-0.5, 0.5], 8), ([-1, 0], 8)]
        assert scaler.state_dict() == {
            "scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 2,
            "_growth_tracker": 1,
        }  # fmt: skip
        other = lib.amp.GradScaler("cpu")
        other.load_state_dict(scaler.state_dict())
        assert other.get_scale() == 8 and other.get_growth_interval() == 2

    def test_clipping(self, lib):
        p, optimizer, scaler = self.training(lib)
        scaler.scale([p.sum()])[0].backward()
        scaler.unscale_(optimizer)
        assert p.grad.tolist() == [1, 1]
        with pytest.raises(RuntimeError, match="unscale_.. has already been called"):
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        with pytest.raises(RuntimeError, match=r"step\(\) has already been called"):
            scaler.step(optimizer)
        with pytest.raises(RuntimeError, match="is being called after step"):
            scaler.unscale_(optimizer)
        scaler.update()
        scaler.update(32.0)
        assert scaler.get_scale() == 32

    def test_disabled(self, lib):
        with pytest.warns(UserWarning, match="CUDA is not available"):
            scaler = lib.amp.GradScaler()
        assert not scaler.is_enabled() and scaler.get_scale() == 1 and scaler.state_dict() == {}
        p, optimizer, enabled = self.training(lib)
        assert scaler.scale(p) is p
        p.sum().backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        scaler.load_state_dict({})
        assert p.tolist() == [0.5, 1.5]
        with pytest.raises(RuntimeError, match="source state dict is empty"):
            enabled.load_state_dict({})
        with pytest.raises(AssertionError, match="No inf checks"):
            enabled.scale(p)
            enabled.update()

    def test_factors(self, lib):
        scaler = lib.amp.GradScaler("cpu")
        scaler.set_growth_factor(3.0)
        scaler.set_backoff_factor(0.25)
        scaler.set_growth_interval(7)
        found = scaler.get_growth_factor(), scaler.get_backoff_factor()
        assert (*found, scaler.get_growth_interval()) == (3.0, 0.25, 7)
        with pytest.raises(AssertionError, match="growth factor must be > 1"):
            lib.amp.GradScaler("cpu", growth_factor=1.0)
        with pytest.raises(ValueError):
            scaler.scale(3)

    def test_older_names(self):
        from wengert.cuda.amp import GradScaler, autocast

        with pytest.warns(UserWarning, match="CUDA is not available"):
            assert not GradScaler().is_enabled()
        with pytest.warns(UserWarning, match="CUDA is not available"), autocast():
            assert (wengert.ones(1, 1) @ wengert.ones(1, 1)).dtype is wengert.float32


class TestAssertClose:
    @pytest.mark.parametrize(
        "call",
        [
            "close(t([1.0, 2.0]), t([1.0, 2.0 + 1e-6]))",
            "close([t(1.0), t(2.0)], [t(1.0), t(2.0)])",
            "close({'a': t(1.0)}, {'a': t(1.0)})",
            "close(1.0, 1.0 + 1e-9)",
            "close(3, 3)",
            "close(t([float('nan')]), t([float('nan')]), equal_nan=True)",
            "close(t([1.0]), t([1.0], dtype=lib.float64), check_dtype=False)",
            "close(t([1.0]), t([1.5]), rtol=0.0, atol=0.5)",
            "close(t([1, 2]), t([1, 2]))",
            "close(t([True]), t([True]))",
            "close(t([1j]), t([1j]))",
            "close(None, None)",
            "close((), [])",
            "close(t([]), t([]))",
        ],
    )
    def test_passes(self, lib, call):
        eval(call, {"close": lib.testing.assert_close, "t": lib.tensor, "lib": lib})

    @pytest.mark.parametrize(
        "call, phrases",
        [
            (
                "close(t([1.0, 2.0, 3.0]), t([1.0, 2.5, 3.0]))",
                ["Tensor-likes are not close!", "Mismatched elements: 1 / 3 (33.3%)",
                 "Greatest absolute difference: 0.5 at index (1,) (up to 1e-05 allowed)",
                 "at index (1,) (up to 1.3e-06 allowed)"],
            ),
            ("close(t([[1, 2], [3, 4]]), t([[1, 2], [3, 9]]))", ["not equal!", "at index (1, 1)"]),
            ("close(t(1.0), t(2.0))", ["Scalars are not close!", "Expected 2.0 but got 1.0."]),
            ("close(1.0, 2.0)", ["Scalars are not close!", "Expected 2.0 but got 1.0."]),
            ("close(1, 2)", ["Scalars are not equal!", "Absolute difference: 1"]),
            ("close(t([1.0]), t([1.0, 2.0]))", ["attribute 'shape' do not match"]),
            ("close(t([1.0]), t([1]))", ["attribute 'dtype' do not match"]),
            ("close(t([float('nan')]), t([float('nan')]))", ["not close!"]),
            ("close([t(1.0)], [t(1.0), t(2.0)])", ["length of the sequences mismatch: 1 != 2"]),
            ("close({'a': t(1.0)}, {'b': t(1.0)})", ["keys of the mappings do not match"]),
            ("close([t(1.0), {'k': t(2.0)}], [t(1.0), {'k': t(3.0)}])", ["item [1]['k']"]),
            ("close(t([1.0]), t([2.0]), msg='mine')", ["mine"]),
            ("close(t([1.0]), t([2.0]), msg=lambda m: 'X' + m)", ["XTensor-likes"]),
            ("close(None, t(1.0))", ["None"]),
            ("close(t([1.0]).expand(2), t([1.0, 1.0]), check_stride=True)", ["'stride()'"]),
        ],
    )  # fmt: skip
    def test_fails(self, lib, call, phrases):
        with pytest.raises(AssertionError) as caught:
            eval(call, {"close": lib.testing.assert_close, "t": lib.tensor, "lib": lib})
        for phrase in phrases:
            assert phrase in str(caught.value)

    def test_wrong_calls(self, lib):
        with pytest.raises(ValueError, match="'rtol' and 'atol'"):
            lib.testing.assert_close(1.0, 1.0, rtol=0.1)
        with pytest.raises(TypeError, match="No comparison pair"):
            lib.testing.assert_close(lib.ones(1), "text")

    def test_older_name(self):
        with pytest.warns(FutureWarning, match="assert_close"):
            wengert.testing.assert_allclose(wengert.ones(2), [1.0, 1.0])


class TestMakeTensor:
    @pytest.mark.parametrize(
        "call",
        [
            "(5, dtype=lib.float32)", "((2, 3), dtype=lib.int64)", "(2, 3, dtype=lib.uint8)",
            "(4, dtype=lib.bool)", "(4, dtype=lib.complex64)", "(20, dtype=lib.bfloat16)",
            "(6, dtype=lib.float64, low=0, high=2)", "(6, dtype=lib.int8, low=-300, high=3)",
            "(2, 3, dtype=lib.float32, noncontiguous=True)",
            "(50, dtype=lib.int64, low=0, high=3, exclude_zero=True)",
            "((), dtype=lib.float32, requires_grad=True)",
        ],
    )  # fmt: skip
    def test_same_numbers(self, call):
        torch = pytest.importorskip("torch")
        made = []
        for library in (torch, wengert):
            library.manual_seed(3)
            make = functools.partial(library.testing.make_tensor, device="cpu")
            made.append(eval(f"make{call}", {"lib": library, "make": make}))
        theirs, ours = made
        assert ours.tolist() == theirs.tolist() and ours.stride() == theirs.stride()
        assert str(ours.dtype).split(".")[1] == str(theirs.dtype).split(".")[1]
        assert ours.requires_grad == theirs.requires_grad

    @pytest.mark.parametrize(
        "options, phrase",
        [
            ({"low": 3, "high": 1}, "must be less than `high`"),
            ({"low": float("nan")}, "cannot be NaN"),
            ({"low": 1e30, "high": 1e31, "dtype": "float16"}, "only supports"),
        ],
    )
    def test_refusals(self, lib, options, phrase):
        options = dict(options)
        kind = getattr(lib, options.pop("dtype", "float32"))
        with pytest.raises(ValueError, match=phrase):
            lib.testing.make_tensor(3, dtype=kind, device="cpu", **options)
