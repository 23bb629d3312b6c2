"""What programs touch without needing it: scripts, processes, the compiler, settings to come."""

import importlib

import pytest

import wengert


class TestScripts:
    def test_questions_and_marks(self, lib):
        jit = importlib.import_module(f"{lib.__name__}.jit")
        assert lib.jit is jit and not jit.is_scripting() and not jit.is_tracing()
        assert jit.annotate(list, [1]) == [1] and jit.isinstance(3, int)

        class Model(lib.nn.Module):
            factor: jit.Final[int] = 3

            @jit.export
            def helper(self, x):
                return x * self.factor

            @jit.ignore
            def ignored(self):
                return 1

            @jit.ignore(drop=True)
            def dropped(self):
                return 2

            @jit.unused
            def unused(self):
                return 3

            def forward(self, x):
                return self.helper(x)

        model = Model()
        assert model(lib.ones(2)).tolist() == [3, 3]
        assert (model.ignored(), model.dropped(), model.unused()) == (1, 2, 3)
        assert jit.script_if_tracing(model.helper)(lib.ones(1)).item() == 3
        with jit.optimized_execution(False):
            pass

    @pytest.mark.parametrize("name", ["script", "trace", "load", "save", "freeze", "fork"])
    def test_compilation_is_refused(self, name):
        with pytest.raises(NotImplementedError, match=f"jit.{name} is out of scope.*compile"):
            getattr(wengert.jit, name)(lambda x: x)
        with pytest.raises(AttributeError, match="no TorchScript; nearest: compile"):
            wengert.jit.whatever


class TestProcesses:
    def test_there_are_no_groups(self):
        distributed = importlib.import_module("wengert.distributed")
        assert not distributed.is_available() and not distributed.is_initialized()
        assert not distributed.is_nccl_available() and not distributed.is_torchelastic_launched()
        with pytest.raises(AttributeError, match="not there yet: one process computes"):
            distributed.init_process_group
        assert not hasattr(distributed, "all_reduce")


class TestConversions:
    def test_parameters_stay_or_are_made_anew(self, lib):
        future = importlib.import_module(f"{lib.__name__}.__future__")
        layer = lib.nn.Linear(2, 2)
        weight = layer.weight
        weight.grad = lib.ones(2, 2)
        assert layer.double().weight is weight
        assert not future.get_overwrite_module_params_on_conversion()
        future.set_overwrite_module_params_on_conversion(True)
        try:
            assert layer.float().weight is not weight and weight.dtype is lib.float64
            assert isinstance(layer.weight, lib.nn.Parameter)
            assert layer.weight.grad.dtype is lib.float32
        finally:
            future.set_overwrite_module_params_on_conversion(False)
        assert not future.get_swap_module_params_on_conversion()
        future.set_swap_module_params_on_conversion(False)

    def test_contents_are_not_swapped(self):
        with pytest.raises(NotImplementedError, match="stay the same objects anyway"):
            importlib.import_module("wengert.__future__").set_swap_module_params_on_conversion(True)
        with pytest.raises(AttributeError, match="not planned because what holds a tensor"):
            wengert.utils.swap_tensors

    @pytest.mark.parametrize("name", ["cuda", "xpu", "ipu", "mtia"])
    def test_devices_that_are_not_there(self, lib, name):
        with pytest.raises((RuntimeError, AssertionError)):
            getattr(lib.nn.Linear(2, 2), name)()


class TestCompiler:
    def test_questions(self, lib):
        assert not lib.compiler.is_compiling() and not lib.compiler.is_dynamo_compiling()
        assert not lib.compiler.is_exporting()
        wengert.compiler.cudagraph_mark_step_begin()
        assert "native" in wengert.compiler.list_backends()

    def test_inside_a_trace(self):
        @wengert.compile
        def chosen(x):
            return x * 2 if wengert.compiler.is_compiling() else x * 3

        assert chosen(wengert.ones(1)).item() == 2

    def test_functions_kept_out(self):
        @wengert.compiler.disable(reason="it prints")
        def shown(x):
            return x + 1

        @wengert.compile
        def both(x):
            return shown(x) * 2

        assert shown(wengert.ones(1)).item() == 2
        with pytest.warns(UserWarning, match="kept out of graphs by compiler.disable.*it prints"):
            assert both(wengert.ones(1)).item() == 4
        assert wengert.compiler.allow_in_graph(shown) is shown
        with pytest.raises(AttributeError, match="keeps no state beside its functions"):
            wengert.compiler.reset


def test_attention(lib):
    attention = importlib.import_module(f"{lib.__name__}.nn.attention")
    assert attention.current_flash_attention_impl() is None
    assert not attention.WARN_FOR_UNFUSED_KERNELS


def test_weights_of_convolutions(lib):
    model = lib.nn.Sequential(lib.nn.Conv2d(2, 3, 3), lib.nn.ConvTranspose2d(3, 2, 3))
    given = [p.detach().tolist() for p in model.parameters()]
    strides = lib.nn.Conv3d(2, 3, 3).weight.stride()
    made = lib.nn.utils.convert_conv2d_weight_memory_format(model, lib.channels_last)
    assert made is model
    assert all(layer.weight.is_contiguous(memory_format=lib.channels_last) for layer in model)
    assert [p.detach().tolist() for p in model.parameters()] == given
    volume = lib.nn.Conv3d(2, 3, 3)
    lib.nn.utils.convert_conv2d_weight_memory_format(volume, lib.channels_last)
    assert volume.weight.stride() == strides
    lib.nn.utils.convert_conv3d_weight_memory_format(volume, lib.channels_last_3d)
    assert volume.weight.is_contiguous(memory_format=lib.channels_last_3d)


def test_arguments_of_factories(lib):
    select = lib.nn.factory_kwargs
    assert select(None) == select({}) == {}
    assert select({"device": 1, "factory_kwargs": {"dtype": 2}}) == {"device": 1, "dtype": 2}
    with pytest.raises(TypeError, match="unexpected kwargs .'foo'."):
        select({"foo": 1})
    with pytest.raises(TypeError, match="device specified twice"):
        select({"device": 1, "factory_kwargs": {"device": 2}})


def test_older_names(lib):
    with pytest.warns(FutureWarning, match="nn.Container. is deprecated"):
        made = lib.nn.Container(a=lib.nn.Linear(1, 1))
    assert list(made.state_dict()) == ["a.weight", "a.bias"]
    p = lib.nn.Parameter(lib.ones(2))
    p.grad = lib.full((2,), 3.0)
    with pytest.warns(FutureWarning, match="clip_grad_norm. is now deprecated"):
        lib.nn.utils.clip_grad_norm([p], 1.0)
    assert abs(p.grad.norm().item() - 1) < 1e-5


def test_options_of_the_loss_of_a_linear_layer(lib):
    make = lib.nn.LinearCrossEntropyOptions
    assert repr(make()).startswith("LinearCrossEntropyOptions(allow_retain_graph=False, batch_ch")
    for wrong in ({"acc_policy": "x"}, {"chunking_method": "x"}, {"batch_chunk_size": -1},
                  {"chunking_method": "aspect_ratio:0"}, {"acc_dtype": lib.int64}):  # fmt: skip
        with pytest.raises(ValueError, match="invalid|must be"):
            make(**wrong)
    lib.manual_seed(0)
    loss = lib.nn.LinearCrossEntropyLoss(3, 5, options=make(batch_chunk_size=2))
    plain = lib.nn.LinearCrossEntropyLoss(3, 5)
    plain.load_state_dict(loss.state_dict())
    x, y = lib.randn(6, 3), lib.randint(5, (6,))
    assert abs(loss(x, y).item() - plain(x, y).item()) < 1e-6
    assert "options=LinearCrossEntropyOptions(" in repr(loss)
