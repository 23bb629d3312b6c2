"""What all optimizers have in common: groups, closures, hooks, copies and errors."""

import copy
import importlib
import pickle
import warnings

import pytest

import wengert
from optim.rules import OPTIONS
from optim.training import arrays, assert_same, loss_of, parameters, train


def module_of(lib):
    return importlib.import_module(f"{lib.__name__}.optim.optimizer")


class TestGroups:
    def test_one_group(self, lib):
        params = parameters(lib)
        optimizer = lib.optim.SGD(params, lr=0.1)
        (group,) = optimizer.param_groups
        assert group["params"] == params and group["params"] is not params
        assert group["lr"] == 0.1 and group["foreach"] is None
        assert optimizer.defaults["momentum"] == 0

    def test_groups_take_what_they_do_not_say_from_the_defaults(self, lib):
        weight, bias = parameters(lib)
        optimizer = lib.optim.Adam([{"params": weight, "lr": 1.0}, {"params": [bias]}], lr=0.2)
        assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.2]
        assert optimizer.param_groups[0]["params"] == [weight]

    def test_groups_are_added(self, lib):
        weight, bias = parameters(lib)
        optimizer = lib.optim.SGD([weight], lr=0.1)
        optimizer.add_param_group({"params": bias, "lr": 0.5})
        before = arrays(bias)
        train(lib, optimizer, [weight, bias], 1)
        assert (arrays(bias) != before).all()

    def test_names(self, lib):
        weight, bias = parameters(lib)
        optimizer = lib.optim.SGD([("weight", weight), ("bias", bias)])
        assert optimizer.param_groups[0]["param_names"] == ["weight", "bias"]
        assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]
        with pytest.raises(ValueError, match="with/without names. cannot add param group without"):
            optimizer.add_param_group({"params": [lib.zeros(2, requires_grad=True)]})
        with pytest.raises(ValueError, match="Some param names are missing"):
            lib.optim.SGD([("weight", weight), bias])

    def test_a_generator(self, lib):
        optimizer = lib.optim.SGD(p for p in parameters(lib))
        assert len(optimizer.param_groups[0]["params"]) == 2

    def test_required_options(self, lib):
        required = module_of(lib).required
        base = lib.optim.Optimizer
        with pytest.raises(ValueError, match="required optimization parameter lr"):
            base(parameters(lib), {"lr": required})
        weight, bias = parameters(lib)
        groups = base([{"params": weight, "lr": 1}], {"lr": required}).param_groups
        assert groups[0]["lr"] == 1 and "required parameter" in repr(required)


class TestRefused:
    def test_parameters(self, lib):
        weight, bias = parameters(lib)
        sgd = lib.optim.SGD
        with pytest.raises(TypeError, match="should be an iterable of Tensors or dicts"):
            sgd(weight)
        with pytest.raises(ValueError, match="empty parameter list"):
            sgd([])
        with pytest.raises(TypeError, match="can only optimize Tensors"):
            sgd([weight, 3.0])
        with pytest.raises(ValueError, match="can't optimize a non-leaf Tensor"):
            sgd([weight * 2])
        with pytest.raises(TypeError, match="ordered collections"):
            sgd([{"params": {weight, bias}}])
        with pytest.raises(ValueError, match="more than one parameter group"):
            sgd([{"params": weight}, {"params": [bias, weight]}])
        with pytest.raises(TypeError, match="param_group must be a dict"):
            sgd([weight]).add_param_group([bias])
        with pytest.raises(KeyError):
            sgd([{"lr": 3}])

    def test_duplicates_are_warned_of(self, lib):
        weight, _ = parameters(lib)
        with pytest.warns(UserWarning, match="duplicate parameters"):
            lib.optim.SGD([weight, weight])

    def test_a_result_that_keeps_its_gradient_is_accepted(self, lib):
        weight, _ = parameters(lib)
        result = weight * 2
        result.retain_grad()
        lib.optim.SGD([result])

    def test_no_step(self, lib):
        with pytest.raises(NotImplementedError):
            lib.optim.Optimizer(parameters(lib), {}).step()

    @pytest.mark.parametrize("name", OPTIONS)
    def test_options_of_all(self, lib, name):
        make, params = getattr(lib.optim, name), parameters(lib)
        with pytest.raises(ValueError, match="Invalid learning rate: -1"):
            make(params, lr=-1.0)
        with pytest.raises(ValueError, match="Tensor lr must be 1-element"):
            make(params, lr=lib.ones(2))
        with pytest.raises(TypeError, match="unexpected keyword argument 'rate'"):
            make(params, rate=1)
        for option, words in [
            ("weight_decay", "Invalid weight_decay value"),
            ("eps", "Invalid epsilon value"),
            ("momentum", "Invalid momentum value"),
        ]:
            if option in OPTIONS[name]:
                with pytest.raises(ValueError, match=words):
                    make(params, **{option: -1.0})
        if "betas" in OPTIONS[name]:
            with pytest.raises(ValueError, match="Invalid beta parameter at index 0: 1.0"):
                make(params, betas=(1.0, 0.9))
            with pytest.raises(ValueError, match="Invalid beta parameter at index 1: -0.1"):
                make(params, betas=(0.9, -0.1))

    @pytest.mark.parametrize(
        ("name", "given", "words"),
        [
            ("SGD", {"nesterov": True}, "Nesterov momentum requires a momentum"),
            ("SGD", {"nesterov": True, "momentum": 1, "dampening": 1}, "zero dampening"),
            ("Adagrad", {"lr_decay": -1.0}, "Invalid lr_decay value: -1.0"),
            ("Adagrad", {"initial_accumulator_value": -1}, "initial_accumulator_value value: -1"),
            ("Adadelta", {"rho": 1.1}, "Invalid rho value: 1.1"),
            ("RMSprop", {"alpha": -1}, "Invalid alpha value: -1"),
            ("NAdam", {"momentum_decay": -1}, "Invalid momentum_decay value: -1"),
            ("Rprop", {"etas": (1.5, 0.5)}, "Invalid eta values: 1.5, 0.5"),
            ("Adam", {"betas": (0, 0.9)}, "both floats or both Tensors"),
        ],
    )
    def test_options_of_one(self, lib, name, given, words):
        with pytest.raises(ValueError, match=words):
            getattr(lib.optim, name)(parameters(lib), **given)

    def test_tensors_of_adam(self, lib):
        params = parameters(lib)
        with pytest.raises(ValueError, match="lr as a Tensor is not supported"):
            lib.optim.Adam(params, lr=lib.tensor(0.1), foreach=True)
        with pytest.raises(ValueError, match="both floats or both Tensors"):
            lib.optim.Adam(params, betas=(lib.tensor(0.5), 0.9))

    def test_betas_of_several_elements(self):
        betas = (wengert.zeros(2), wengert.zeros(1))
        with pytest.raises(ValueError, match=r"Tensor betas\[0\] must be 1-element"):
            wengert.optim.Adam(parameters(wengert), betas=betas)

    def test_fused_integers(self, lib):
        numbers = lib.arange(3)
        with pytest.raises(RuntimeError, match="`fused=True` requires all the params"):
            optimizer = lib.optim.SGD([numbers], fused=True)
            numbers.grad = lib.arange(3)
            optimizer.step()

    @pytest.mark.parametrize("name", ["SGD", "Adam", "AdamW", "Adagrad"])
    def test_fused(self, lib, name):
        make = getattr(lib.optim, name)
        with pytest.raises(RuntimeError, match="`fused` does not support `differentiable`"):
            make(parameters(lib), fused=True, differentiable=True)
        with pytest.raises(RuntimeError, match="`fused` and `foreach` cannot be"):
            make(parameters(lib), fused=True, foreach=True)

    @pytest.mark.parametrize("name", ["Adam", "Adamax", "NAdam", "RMSprop", "Rprop", "ASGD"])
    def test_capturable_needs_an_accelerator(self, lib, name):
        params = parameters(lib)
        optimizer = getattr(lib.optim, name)(params, capturable=True)
        loss_of(lib, *params).backward()
        with pytest.raises(AssertionError, match="If capturable=True, params"):
            optimizer.step()

    def test_sparse_adam(self):
        with pytest.raises(AttributeError, match="no sparse tensors; nearest: Adam"):
            wengert.optim.SparseAdam
        with pytest.raises(AttributeError, match="no attribute 'Adamx'"):
            wengert.optim.Adamx


class TestSteps:
    def test_closures_are_recorded_and_their_loss_returned(self, lib):
        params = parameters(lib)
        optimizer = lib.optim.SGD(params, lr=0.1)
        modes = []

        def closure():
            modes.append(lib.is_grad_enabled())
            optimizer.zero_grad()
            loss = loss_of(lib, *params)
            loss.backward()
            return loss

        with lib.no_grad():
            first = optimizer.step(closure)
            assert not lib.is_grad_enabled()
        assert modes == [True] and first.requires_grad
        assert optimizer.step(closure=closure) < first
        assert optimizer.step() is None

    def test_zero_grad(self, lib):
        params = parameters(lib)
        optimizer = lib.optim.SGD(params, lr=0.1)
        loss_of(lib, *params).backward()
        kept = params[0].grad
        optimizer.zero_grad(set_to_none=False)
        assert params[0].grad is kept and not kept.any()
        optimizer.zero_grad()
        assert params[0].grad is None

    def test_zero_grad_cuts_the_history_of_gradients(self, lib):
        weight, _ = parameters(lib)
        optimizer = lib.optim.SGD([weight], lr=0.1)
        (weight**3).sum().backward(create_graph=True)
        assert weight.grad.grad_fn is not None
        optimizer.zero_grad(set_to_none=False)
        assert weight.grad.grad_fn is None and not weight.grad.requires_grad

    def test_an_optimizer_of_a_program(self, lib):
        class Descent(lib.optim.Optimizer):
            def __init__(self, params, lr=0.1):
                super().__init__(params, {"lr": lr})

            @lib.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in group["params"]:
                        p.add_(p.grad, alpha=-group["lr"])

        called = []
        weight, bias = params = parameters(lib)
        optimizer = Descent(params)
        optimizer.register_step_post_hook(lambda *arguments: called.append(arguments[0]))
        (2 * weight).sum().backward()
        bias.grad = lib.zeros_like(bias)
        before = arrays(weight)
        optimizer.step()
        assert abs(arrays(weight) - before + 0.2).max() < 1e-12 and called == [optimizer]

    def test_a_derived_optimizer_runs_hooks_once(self):
        class Counted(wengert.optim.Adam):
            def step(self, closure=None):
                return super().step(closure)

        called = []
        params = parameters(wengert)
        optimizer = Counted(params)
        optimizer.register_step_pre_hook(lambda *arguments: called.append(1))
        train(wengert, optimizer, params, 3)
        assert called == [1, 1, 1]

    def test_steps_have_a_name_in_profiles(self, lib):
        params = parameters(lib)
        optimizer = lib.optim.SGD(params)
        loss_of(lib, *params).backward()
        with lib.autograd.profiler.profile() as profile:
            optimizer.step()
            optimizer.zero_grad()
        names = {event.name for event in profile.function_events}
        assert {"Optimizer.step#SGD.step", "Optimizer.zero_grad#SGD.zero_grad"} <= names


class TestHooks:
    def test_order_and_arguments(self, lib):
        module = module_of(lib)
        params = parameters(lib)
        optimizer, other = lib.optim.SGD(params), lib.optim.SGD(params)
        called = []

        def note(name):
            return lambda opt, args, kwargs: called.append((name, opt is optimizer, kwargs))

        handles = [
            optimizer.register_step_pre_hook(note("before")),
            optimizer.register_step_post_hook(note("after")),
            module.register_optimizer_step_pre_hook(note("before all")),
            module.register_optimizer_step_post_hook(note("after all")),
        ]
        optimizer.step(closure=None)
        given = {"closure": None}
        assert called == [
            ("before all", True, given), ("before", True, given),
            ("after", True, given), ("after all", True, given),
        ]  # fmt: skip
        called.clear()
        other.step()
        assert called == [("before all", False, {}), ("after all", False, {})]
        for handle in handles:
            handle.remove()
        called.clear()
        optimizer.step()
        assert not called

    def test_arguments_are_replaced(self, lib):
        optimizer = lib.optim.SGD(parameters(lib))
        optimizer.register_step_pre_hook(lambda opt, args, kwargs: (args, {"closure": lambda: 5}))
        assert optimizer.step() == 5
        optimizer.register_step_pre_hook(lambda opt, args, kwargs: 3)
        with pytest.raises(RuntimeError, match="must return None or a tuple"):
            optimizer.step()

    def test_hooks_of_states(self, lib):
        optimizer = lib.optim.SGD(parameters(lib))
        called = []
        optimizer.register_state_dict_pre_hook(lambda opt: called.append("second"))
        optimizer.register_state_dict_pre_hook(lambda opt: called.append("first"), prepend=True)
        optimizer.register_state_dict_post_hook(lambda opt, state: state | {"more": 1})
        state = optimizer.state_dict()
        assert called == ["first", "second"] and state["more"] == 1
        seen = []
        optimizer.register_load_state_dict_pre_hook(
            lambda opt, state: {**state, "param_groups": [{**state["param_groups"][0], "lr": 7}]}
        )
        optimizer.register_load_state_dict_post_hook(
            lambda opt: seen.append(opt.param_groups[0]["lr"])
        )
        optimizer.load_state_dict(state)
        assert seen == [7]

    def test_the_given_state_is_not_changed_by_hooks(self, lib):
        optimizer = lib.optim.SGD(parameters(lib))
        optimizer.register_load_state_dict_pre_hook(lambda opt, state: state.pop("more") and None)
        state = optimizer.state_dict() | {"more": 1}
        optimizer.load_state_dict(state)
        assert state["more"] == 1


class TestCopies:
    @pytest.mark.parametrize("name", OPTIONS)
    @pytest.mark.parametrize("way", ["pickle", "deepcopy"])
    def test_copies_go_on_alike(self, lib, name, way):
        params = parameters(lib)
        optimizer = getattr(lib.optim, name)(params, lr=0.05)
        train(lib, optimizer, params, 3)
        optimizer.zero_grad()
        if way == "pickle":
            twin = pickle.loads(pickle.dumps(optimizer))
        else:
            twin = copy.deepcopy(optimizer)
        copies = twin.param_groups[0]["params"]
        assert copies[0] is not params[0] and repr(twin) == repr(optimizer)
        assert_same(train(lib, twin, copies, 3), train(lib, optimizer, params, 3))

    def test_repr(self, lib):
        weight, bias = parameters(lib)
        optimizer = lib.optim.RMSprop([{"params": weight, "own": "x"}, {"params": bias}])
        assert repr(optimizer).startswith("RMSprop (\nParameter Group 0\n    alpha: 0.99\n")
        assert "    own: x\n" in repr(optimizer) and "\n\nParameter Group 1\n" in repr(optimizer)
        assert repr(optimizer).endswith("0\n)")

    def test_a_copy_with_a_scheduler(self, lib):
        optimizer = lib.optim.SGD(parameters(lib), lr=1.0)
        scheduler = lib.optim.lr_scheduler.StepLR(optimizer, 1)
        twin = copy.deepcopy(optimizer)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            optimizer.step()
            scheduler.step()
        assert (optimizer.param_groups[0]["lr"], twin.param_groups[0]["lr"]) == (0.1, 1.0)
