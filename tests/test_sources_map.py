"""The map for readers of PyTorch's sources: every name of the five files, every place exists."""

import ast
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
PACKAGE = REPOSITORY / "src" / "wengert"
PAGE = (REPOSITORY / "docs" / "pytorch-sources.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.+?) \| `([\w/]+\.py):(\w+)` \| (.*?) \|$", re.MULTILINE)
NAMED = re.compile(r"`([\w/]+\.py)`")

#: What the five files define, by file.
DEFINED = {
    "torch/autograd/__init__.py": "_calculate_shape _make_grads _tensor_or_tensors_to_tuple "
    "backward grad _is_checkpoint_valid variable Variable _register_py_tensor_class_for_device "
    "is_multithreading_enabled is_view_replay_enabled",
    "torch/autograd/graph.py": "Node name next_functions metadata register_hook register_prehook "
    "_register_hook_dict GradientEdge get_gradient_edge _get_grad_fn_or_grad_acc "
    "increment_version saved_tensors_hooks save_on_cpu disable_saved_tensors_hooks _MultiHandle "
    "register_multi_grad_hook _get_tid _get_sid _Handle _swap_with_cloned "
    "_CloneArgBeforeMutateMode _AllowMutationOnSavedContext allow_mutation_on_saved_tensors "
    "_register_logging_hooks_on_whole_graph _engine_run_backward",
    "torch/_library/autograd.py": "InfoProtocol Info make_autograd_impl Metadata forward_no_grad "
    "forward backward autograd_impl supports_tensorlist new_forward new_backward new_apply "
    "not_list_of_tensor not_list_of_optional_tensor",
    "torch/csrc/jit/runtime/autodiff.cpp": "needTrimGrad isDifferentiable build_script_grad "
    "GradientHelper buildSymbolicGradient linearGradientForNode ReverseDetails createAutogradAdd "
    "outputRequiresGrad addReverseInline getReverseCaptures liftConstants inBlock "
    "foldSizeIfNotEqual deduplicateSizeCaptures eliminateDeadCode Optimize lambdaLiftReverse "
    "packReturnValuesIntoTuple differentiate",
    "torch/csrc/autograd/python_engine.cpp": "THPEngine _reinitialize_engine get_python_engine "
    "thread_init thread_on_exception make_anomaly_metadata get_default_saved_variable_hooks "
    "execute execute_with_graph_task THPEngine_run_backward THPEngine_queue_callback "
    "THPEngine_is_checkpoint_valid THPEngineType child_atfork THPEngine_initModule",
}


def section(file):
    """The part of the page about one file."""
    return PAGE.partition(f"## `{file}`\n")[2].partition("\n## ")[0]


def defined_in(path):
    """The names that a module defines at its top level."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names


@pytest.mark.parametrize("file", DEFINED)
def test_every_definition_of_a_file_is_on_the_map(file):
    rows = ROW.findall(section(file))
    listed = {word for named, *_ in rows for word in re.findall(r"\w+", named)}
    assert set(DEFINED[file].split()) <= listed


def test_every_place_exists():
    rows = ROW.findall(PAGE)
    assert len(rows) == len(re.findall(r"^\| (?!PyTorch|---)", PAGE, re.MULTILINE)) > 70
    missing = [
        f"{file}:{name}"
        for _, file, name, _ in rows
        if not (PACKAGE / file).is_file() or name not in defined_in(PACKAGE / file)
    ]
    assert not missing


def test_every_file_and_method_in_the_remarks_exists():
    for _, file, name, remark in ROW.findall(PAGE):
        for other in NAMED.findall(remark):
            assert (PACKAGE / other).is_file()
        if name == "_Reverse" and (method := re.match(r"`(\w+)`", remark)):
            assert f"    def {method[1]}(" in (PACKAGE / file).read_text(encoding="utf-8")
