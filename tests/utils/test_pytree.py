"""Trees of containers; every test with the `tree` fixture also runs on PyTorch's module."""

import importlib
import pickle
import time
from collections import OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

import wengert
from wengert.utils import pytree

Point = namedtuple("Point", "x y")
Other = namedtuple("Other", "x y")
NESTED = (1, [2, {"b": 3, "a": (4, None)}])


@pytest.fixture
def tree(lib):
    """The module of the library under test."""
    return importlib.import_module(f"{lib.__name__}.utils._pytree")


@pytest.fixture
def register(tree):
    """Registers a class with the module under test, until the test has ended."""
    classes = []

    def call(function, cls, *args, **kwargs):
        getattr(tree, function)(cls, *args, **kwargs)
        classes.append(cls)

    yield call
    for cls in classes:
        tree._deregister_pytree_node(cls)


class Pair:
    """A class that no library knows."""

    def __init__(self, first, label):
        self.first = first
        self.label = label


def register_pair(register, **kwargs):
    register(
        "register_pytree_node",
        Pair,
        lambda p: ([p.first], p.label),
        lambda children, label: Pair(*children, label),
        **kwargs,
    )


CONTAINERS = [
    (1, 2),
    [1, (2, 3)],
    {"b": 1, "a": [2]},
    OrderedDict([("b", 1), ("a", 2)]),
    defaultdict(list, x=1, y=(2, 3)),
    deque([1, 2], maxlen=5),
    Point(1, [2, 3]),
    (),
    [],
    {},
    [()],
    None,
    7,
    NESTED,
]


@pytest.mark.parametrize("value", CONTAINERS, ids=repr)
def test_unflatten_undoes_flatten(tree, value):
    leaves, spec = tree.tree_flatten(value)
    again = tree.tree_unflatten(leaves, spec)
    assert again == value
    assert type(again) is type(value)
    assert spec.num_leaves == len(leaves)


@pytest.mark.parametrize(
    ("value", "leaves", "text"),
    [
        (7, [7], "*"),
        (None, [None], "*"),
        ((), [], "TreeSpec(tuple, None, [])"),
        ({"b": 1, "a": 2}, [1, 2], "TreeSpec(dict, ['b', 'a'], [*,\n  *])"),
        (defaultdict(list, x=1), [1], "TreeSpec(defaultdict, [<class 'list'>, ['x']], [*])"),
        (deque([1], maxlen=3), [1], "TreeSpec(deque, 3, [*])"),
        (
            NESTED,
            [1, 2, 3, 4, None],
            "TreeSpec(tuple, None, [*,\n  TreeSpec(list, None, [*,\n    TreeSpec(dict, ['b', 'a'], "
            "[*,\n      TreeSpec(tuple, None, [*,\n        *])])])])",
        ),
    ],
    ids=repr,
)
def test_leaves_and_printed_structure(tree, value, leaves, text):
    found, spec = tree.tree_flatten(value)
    assert found == leaves == tree.tree_leaves(value) == list(tree.tree_iter(value))
    assert repr(spec) == str(spec) == text
    assert tree.tree_structure(value) == spec


def test_named_tuples_keep_their_class(tree):
    leaves, spec = tree.tree_flatten(Point(1, (2, 3)))
    assert leaves == [1, 2, 3]
    assert spec.type is namedtuple
    assert spec.context is Point
    assert tree.tree_map(lambda v: -v, Point(1, (2, 3))) == Point(-1, (-2, -3))


def test_sizes_and_named_results(lib, tree):
    assert tree.tree_leaves(lib.Size([2, 3])) == [2, 3]
    assert type(tree.tree_map(lambda n: n + 1, lib.Size([2, 3]))) is tuple
    found = lib.max(lib.tensor([[1.0, 5.0]]), 1)
    doubled = tree.tree_map(lambda t: t * 2, found)
    assert type(doubled) is type(found)
    assert doubled.values.tolist() == [10.0]
    assert doubled.indices.tolist() == [2]


def test_unknown_classes_and_subclasses_are_leaves(tree):
    class Special(dict):
        pass

    for value in (Pair(1, 2), Special(a=1), time.gmtime(0), {1, 2}, "text"):
        assert tree.tree_leaves(value) == [value]


# Specs -------------------------------------------------------------------------------------------


def test_counts_and_children(tree):
    spec = tree.tree_structure(NESTED)
    assert (spec.num_leaves, spec.num_nodes, spec.num_children) == (5, 9, 2)
    assert spec.type is tuple
    assert spec.context is None
    assert not spec.is_leaf()
    assert spec.child(0).is_leaf()
    assert spec.children() == [tree.tree_structure(0), tree.tree_structure(NESTED[1])]
    leaf = tree.tree_structure(3)
    assert (leaf.num_leaves, leaf.num_nodes, leaf.num_children) == (1, 1, 0)
    assert leaf.children() == []


def test_specs_compare_by_structure(tree):
    spec = tree.tree_structure
    assert spec(NESTED) == spec((5, [6, {"b": 7, "a": (8, 9)}]))
    assert hash(spec(NESTED)) == hash(spec((5, [6, {"b": 7, "a": (8, 9)}])))
    assert spec((1, 2)) != spec([1, 2])
    assert spec((1, 2)) != spec((1, 2, 3))
    assert spec(((1,), 2)) != spec((1, (2,)))
    assert spec({"a": 1, "b": 2}) != spec({"b": 2, "a": 1})
    assert spec({"a": 1}) != spec(OrderedDict(a=1))
    assert spec(deque([1], maxlen=2)) != spec(deque([1], maxlen=3))
    assert spec(Point(1, 2)) != spec(Other(1, 2))
    assert spec(()) != spec(1)
    assert spec((1,)) != "(1,)"


def test_specs_are_dictionary_keys(tree):
    table = {tree.tree_structure(value): i for i, value in enumerate(CONTAINERS[:-4])}
    assert table[tree.tree_structure({"b": 5, "a": [6]})] == 2


def test_specs_made_by_hand(tree):
    leaf = tree.treespec_leaf()
    assert tree.treespec_tuple([leaf, leaf]) == tree.tree_structure((1, 2))
    assert tree.treespec_dict({"a": leaf}, b=leaf) == tree.tree_structure({"a": 1, "b": 2})
    assert tree.TreeSpec(list, None, [leaf]) == tree.tree_structure([1])


@pytest.mark.parametrize("leaves", [[1], [1, 2, 3]])
def test_wrong_number_of_leaves(tree, leaves):
    with pytest.raises(ValueError, match=f"`leaves` has length {len(leaves)} but.* holds 2 items"):
        tree.tree_unflatten(leaves, tree.tree_structure((1, 2)))


def test_leaves_may_come_from_an_iterator(tree):
    assert tree.tree_unflatten(iter("ab"), tree.tree_structure([1, (2,)])) == ["a", ("b",)]


def test_unflatten_wants_a_spec(tree):
    with pytest.raises(TypeError, match="Expected `treespec` to be an instance of PyTreeSpec"):
        tree.tree_unflatten([1], (1,))


def test_a_spec_with_stars(tree):
    assert tree.treespec_pprint(tree.tree_structure(NESTED)) == "(*, [*, {'b': *, 'a': (*, *)}])"
    assert tree.treespec_pprint(tree.tree_structure(Point(1, 2))) == "Point(x=*, y=*)"


# Mapping -----------------------------------------------------------------------------------------


def test_map_over_several_trees(tree):
    assert tree.tree_map(lambda a, b: (a, b), [1, {"k": 2}], [3, {"k": 4}]) == [
        (1, 3),
        {"k": (2, 4)},
    ]
    # the first tree alone decides what a leaf is
    assert tree.tree_map(lambda a, b: (a, b), (1, 2), (3, (4, 5))) == ((1, 3), (2, (4, 5)))


def test_dictionaries_match_by_key(tree):
    expected = {"a": (1, 4), "b": (2, 3)}
    assert tree.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, {"b": 3, "a": 4}) == expected
    ordered = tree.tree_map(lambda a, b: (a, b), OrderedDict(a=1, b=2), {"b": 3, "a": 4})
    assert type(ordered) is OrderedDict
    assert ordered == expected
    default = defaultdict(int, b=3, a=4)
    assert tree.tree_map(lambda a, b: (a, b), {"a": 1, "b": 2}, default) == expected
    assert tree.tree_map(lambda a, b: (b, a), default, {"a": 1, "b": 2}) == expected


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ((1, 2), [3, 4], "Node type mismatch; expected <class 'tuple'>, but got <class 'list'>"),
        ((1, 2), 3, "Node type mismatch; expected <class 'tuple'>, but got <class 'int'>"),
        ((1, 2), (3, 4, 5), "Node arity mismatch; expected 2, but got 3"),
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, "Node keys mismatch; missing key.*'a'.*extra.*'c'"),
        ({"a": 1}, {"a": 1, "b": 2}, "Node arity mismatch; expected 1, but got 2"),
        (Point(1, 2), Other(1, 2), "Node context mismatch.*Point.*Other"),
        (Point(1, 2), (1, 2), "Node type mismatch"),
    ],
    ids=repr,
)
def test_trees_that_do_not_match(tree, first, second, message):
    with pytest.raises(ValueError, match=message):
        tree.tree_map(lambda a, b: None, first, second)


def test_limits_of_deques_need_not_match(tree):
    mapped = tree.tree_map(lambda a, b: a + b, deque([1, 2], maxlen=3), deque([3, 4]))
    assert mapped == deque([4, 6])
    assert mapped.maxlen == 3


def test_map_for_effect_returns_the_tree(tree):
    seen = []
    value = [1, (2, 3)]
    assert tree.tree_map_(lambda a, b: seen.append((a, b)), value, [4, (5, 6)]) is value
    assert seen == [(1, 4), (2, 5), (3, 6)]
    assert tree.tree_map_only_(int, seen.append, value) is value
    assert seen[3:] == [1, 2, 3]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        (int, (-1, 2.0, "a")),
        ((int, float), (-1, -2.0, "a")),
        (int | float, (-1, -2.0, "a")),
        (lambda v: v == 2.0, (1, -2.0, "a")),
    ],
    ids=["type", "types", "union", "predicate"],
)
def test_map_only(tree, selection, expected):
    assert tree.tree_map_only(selection, lambda v: -v, (1, 2.0, "a")) == expected


def test_map_only_wants_types_or_a_predicate(tree):
    with pytest.raises(TypeError, match="must be a type, a tuple of types, or a callable"):
        tree.tree_map_only(3, abs, (1,))


def test_any_and_all(tree):
    assert tree.tree_all(lambda v: v > 0, [1, (2,)])
    assert not tree.tree_all(lambda v: v > 1, [1, (2,)])
    assert tree.tree_any(lambda v: v > 1, [1, (2,)])
    assert not tree.tree_any(lambda v: v > 2, [1, (2,)])
    assert tree.tree_all_only(int, lambda v: v > 0, (1, "a"))
    assert not tree.tree_all_only(int, lambda v: v > 1, (1, "a"))
    assert tree.tree_any_only(int, lambda v: v == 1, (1, "a"))
    assert not tree.tree_any_only(int, lambda v: True, ("a", [2.0]))
    assert tree.tree_all(lambda v: False, ())
    assert not tree.tree_any(lambda v: True, ())


def test_is_leaf_stops_the_descent(tree):
    def is_list(value):
        return isinstance(value, list)

    value = (1, [2, 3], {"a": [4]})
    assert tree.tree_leaves(value, is_leaf=is_list) == [1, [2, 3], [4]]
    assert list(tree.tree_iter(value, is_leaf=is_list)) == [1, [2, 3], [4]]
    leaves, spec = tree.tree_flatten(value, is_leaf=is_list)
    assert leaves == [1, [2, 3], [4]]
    assert spec == tree.tree_structure((1, 2, {"a": 4}))
    assert tree.tree_map(len, [value[1]], is_leaf=lambda v: v == [2, 3]) == [2]
    assert tree.tree_any(is_list, value, is_leaf=is_list)
    assert not tree.tree_any(is_list, value)
    assert tree.tree_is_leaf([1], is_leaf=is_list)
    assert not tree.tree_is_leaf([1])
    assert tree.tree_is_leaf(1)


def test_is_leaf_sees_the_root_first(tree):
    seen = []
    tree.tree_flatten((1, [2]), is_leaf=lambda v: seen.append(v) or False)
    assert seen == [(1, [2]), 1, [2], 2]


def test_leaves_of_arguments(tree):
    assert tree.arg_tree_leaves(1, (2, 3), k=[4]) == [1, 2, 3, 4]


# Paths -------------------------------------------------------------------------------------------


def test_paths_read_like_python(tree):
    value = {"a": (1, [2]), 3: Point(4, deque([5]))}
    found, spec = tree.tree_flatten_with_path(value)
    assert [(tree.keystr(path), leaf) for path, leaf in found] == [
        ("['a'][0]", 1),
        ("['a'][1][0]", 2),
        ("[3].x", 4),
        ("[3].y[0]", 5),
    ]
    assert spec == tree.tree_structure(value)
    assert tree.tree_leaves_with_path(value) == found
    assert all(tree.key_get(value, path) == leaf for path, leaf in found)
    assert found[0][0] == (tree.MappingKey("a"), tree.SequenceKey(0))
    assert hash(found[2][0]) == hash((tree.MappingKey(3), tree.GetAttrKey("x")))
    assert repr(found[2][0]) == "(MappingKey(key=3), GetAttrKey(name='x'))"
    assert tree.SequenceKey(0) != tree.MappingKey(0)
    assert (tree.SequenceKey(4).idx, tree.MappingKey(4).key, tree.GetAttrKey("n").name) == (
        4,
        4,
        "n",
    )


def test_the_path_of_a_leaf_is_empty(tree):
    assert tree.tree_leaves_with_path(1) == [((), 1)]
    assert tree.keystr(()) == ""


def test_map_with_path(tree):
    mapped = tree.tree_map_with_path(
        lambda path, a, b: (tree.keystr(path), a + b), {"k": [1, 2]}, {"k": [3, 4]}
    )
    assert mapped == {"k": [("['k'][0]", 4), ("['k'][1]", 6)]}


# Registered classes ------------------------------------------------------------------------------


def test_registered_class(tree, register):
    assert tree.tree_leaves(Pair(1, "label"))[0].label == "label"
    register_pair(register)
    leaves, spec = tree.tree_flatten((Pair((1, 2), "label"), 3))
    assert leaves == [1, 2, 3]
    assert repr(spec.child(0)) == (
        "TreeSpec(Pair, label, [TreeSpec(tuple, None, [*,\n    *])])"
    )
    first, _ = tree.tree_map(lambda v: v * 10, (Pair((1, 2), "label"), 3))
    assert (first.first, first.label) == ((10, 20), "label")
    with pytest.raises(ValueError, match="Pair'> is already registered as pytree node"):
        register_pair(register)
    with pytest.raises(ValueError, match="Node context mismatch"):
        tree.tree_map(lambda a, b: a, Pair(1, "label"), Pair(1, "other"))


def test_subclass_of_a_registered_class_is_a_leaf(tree, register):
    register_pair(register)

    class Derived(Pair):
        pass

    assert len(tree.tree_leaves(Derived((1, 2), 3))) == 1


def test_registered_class_without_keys_has_no_paths(tree, register):
    register_pair(register)
    with pytest.raises(ValueError, match="Did not find a flatten_with_keys_fn"):
        tree.tree_flatten_with_path(Pair(1, 2))


def test_registered_class_with_keys(tree, register):
    register_pair(
        register,
        flatten_with_keys_fn=lambda p: ([(tree.GetAttrKey("first"), p.first)], p.label),
    )
    paths = [tree.keystr(path) for path, _ in tree.tree_leaves_with_path([Pair((1, 2), 3)])]
    assert paths == ["[0].first[0]", "[0].first[1]"]


@dataclass
class Record:
    a: object
    b: object = 2
    c: object = field(default=3, init=False)


def test_dataclasses_are_leaves_until_registered(tree, register):
    assert tree.tree_leaves(Record(1)) == [Record(1)]
    register("register_dataclass", Record)
    leaves, spec = tree.tree_flatten(Record(1, (5, 6)))
    assert leaves == [1, 5, 6]
    assert tree.tree_unflatten([7, 8, 9], spec) == Record(7, (8, 9))
    assert spec.context == [["a", "b"], []]
    paths = [tree.keystr(path) for path, _ in tree.tree_leaves_with_path(Record(1, (5, 6)))]
    assert paths == [".a", ".b[0]", ".b[1]"]


def test_fields_that_are_none_belong_to_the_structure(tree, register):
    register("register_dataclass", Record)
    leaves, spec = tree.tree_flatten(Record(None, 4))
    assert leaves == [4]
    assert spec != tree.tree_structure(Record(1, 4))
    assert tree.tree_unflatten([5], spec) == Record(None, 5)


def test_dropped_fields_take_their_defaults(tree, register):
    register("register_dataclass", Record, field_names=["a"], drop_field_names=["b"])
    assert tree.tree_map(lambda v: v, Record(1, 9)) == Record(1, 2)


@pytest.mark.parametrize("names", [["a"], ["a", "b", "z"], ["a", "b", "c"]])
def test_field_names_must_be_those_of_the_dataclass(tree, names):
    with pytest.raises(ValueError, match="field_names does not include all dataclass fields"):
        tree.register_dataclass(Record, field_names=names)


def test_other_classes_may_name_their_fields(tree, register):
    with pytest.raises(ValueError, match="field_names must be specified"):
        tree.register_dataclass(Pair)
    register("register_dataclass", Pair, field_names=["first", "label"])
    assert tree.tree_leaves(Pair(1, (2, 3))) == [1, 2, 3]


@dataclass(frozen=True)
class Constant:
    value: int


def test_constants_belong_to_the_structure(tree, register):
    register("register_constant", Constant)
    leaves, spec = tree.tree_flatten((Constant(5), 1))
    assert leaves == [1]
    assert spec == tree.tree_structure((Constant(5), 2))
    assert spec != tree.tree_structure((Constant(6), 2))
    assert tree.tree_map(lambda v: -v, (Constant(5), 1)) == (Constant(5), -1)
    assert tree.is_constant_class(Constant)
    assert not tree.is_constant_class(Record)


def test_constants_must_compare_by_value(tree):
    with pytest.raises(TypeError, match="non-default `__eq__`"):
        tree.register_constant(Pair)
    with pytest.raises(TypeError, match="non-default `__hash__`"):
        tree.register_constant(Record)


# JSON --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [v for v in CONTAINERS if not isinstance(v, Point)], ids=repr)
def test_dumped_specs_load_again(tree, value):
    spec = tree.tree_structure(value)
    assert tree.treespec_loads(tree.treespec_dumps(spec)) == spec


@pytest.mark.parametrize("value", [v for v in CONTAINERS if not isinstance(v, Point)], ids=repr)
def test_dumps_are_readable_by_pytorch(value):
    theirs = pytest.importorskip("torch.utils._pytree")
    dumped = pytree.treespec_dumps(pytree.tree_structure(value))
    assert theirs.treespec_loads(dumped) == theirs.tree_structure(value)


def test_dumping_registered_classes(tree, register):
    register_pair(
        register,
        serialized_type_name="tests.Pair",
        to_dumpable_context=lambda label: ["label", label],
        from_dumpable_context=lambda dumped: dumped[1],
    )
    spec = tree.tree_structure([Pair((1, 2), "label")])
    assert tree.treespec_loads(tree.treespec_dumps(spec)) == spec


def test_classes_without_a_serialized_name_are_not_dumped(tree, register):
    register_pair(register)
    with pytest.raises(NotImplementedError, match="No registered serialization name"):
        tree.treespec_dumps(tree.tree_structure(Pair(1, 2)))
    with pytest.raises(NotImplementedError, match="Can't serialize TreeSpec of namedtuple class"):
        tree.treespec_dumps(tree.tree_structure(Other(1, 2)))


def test_dumping_a_named_tuple_that_has_a_name(tree):
    tree._register_namedtuple(Point, serialized_type_name="tests.Point")
    spec = tree.tree_structure(Point(1, 2))
    assert tree.treespec_loads(tree.treespec_dumps(spec)) == spec


def test_both_or_neither_of_the_context_functions(tree):
    with pytest.raises(ValueError, match="Both to_dumpable_context and from_dumpable_context"):
        tree.register_pytree_node(Pair, vars, vars, to_dumpable_context=str)


def test_protocols(tree):
    with pytest.raises(ValueError, match="Unknown protocol 7"):
        tree.treespec_dumps(tree.tree_structure(1), 7)
    with pytest.raises(ValueError, match="Unknown protocol 2"):
        tree.treespec_loads("[2, {}]")
    with pytest.raises(NotImplementedError, match="Deserializing foo in pytree is not registered"):
        tree.treespec_loads('[1, {"type": "foo", "context": "1", "children_spec": []}]')


# Broadcasting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("upper", "expected"),
    [
        (0, [0, 0, 0, 0, 0]),
        (None, [None] * 5),
        ((0, 1), [0, 1, 1, 1, 1]),
        ((0, [1, None]), [0, 1, None, None, None]),
        ((0, [1, {"b": 5, "a": 6}]), [0, 1, 5, 6, 6]),
        ((0, [1, OrderedDict(b=5, a=6)]), [0, 1, 5, 6, 6]),
        ((0, [1, {"b": 5, "c": 6}]), None),
        ((0, 1, 2), None),
        ([0, 1], None),
        (((0,), 1), None),
    ],
    ids=repr,
)
def test_broadcasting_a_tree_to_a_structure(tree, upper, expected):
    assert tree._broadcast_to_and_flatten(upper, tree.tree_structure(NESTED)) == expected


def test_broadcasting_with_leaves_of_ones_own(tree):
    spec = tree.tree_structure((1, 2))
    pair = (3, 4)
    assert tree._broadcast_to_and_flatten((1, pair), spec) is None
    assert tree._broadcast_to_and_flatten((1, pair), spec, is_leaf=lambda v: v is pair) == [1, pair]


def test_broadcasting_goes_by_key():
    spec = pytree.tree_structure({"b": 1, "a": (2, 3)})
    assert pytree._broadcast_to_and_flatten({"a": 5, "b": 6}, spec) == [6, 5, 5]


# Ours alone --------------------------------------------------------------------------------------


def test_both_names_are_one_module():
    assert importlib.import_module("wengert.utils._pytree") is pytree
    assert wengert.utils._pytree is wengert.utils.pytree is pytree


def test_specs_are_pickled():
    for value in CONTAINERS:
        spec = pytree.tree_structure(value)
        assert pickle.loads(pickle.dumps(spec)) == spec


def test_only_classes_are_registered():
    with pytest.raises(TypeError, match="expected a class"):
        pytree.register_pytree_node(3, None, None)


def test_a_second_registration_of_a_dataclass_replaces_the_first(tree, register):
    register("register_dataclass", Record)
    with pytest.warns(UserWarning, match="already registered"):
        tree.register_dataclass(Record, field_names=["a"], drop_field_names=["b"])
    assert tree.tree_leaves(Record(1, 2)) == [1]


def trees(leaves):
    """Trees of the containers that JSON and equality can tell apart."""
    keys = st.text(max_size=3)
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3),
            st.lists(inner, max_size=3).map(tuple),
            st.dictionaries(keys, inner, max_size=3),
            st.dictionaries(keys, inner, max_size=3).map(OrderedDict),
            st.lists(inner, max_size=3).map(deque),
            st.tuples(inner, inner).map(lambda pair: Point(*pair)),
        ),
        max_leaves=12,
    )


@given(trees(st.integers() | st.none()))
def test_laws_of_trees(value):
    leaves, spec = pytree.tree_flatten(value)
    assert pytree.tree_unflatten(leaves, spec) == value
    assert leaves == [leaf for _, leaf in pytree.tree_leaves_with_path(value)]
    assert spec == pytree.tree_structure(value)
    assert hash(spec) == hash(pytree.tree_structure(pytree.tree_map(str, value)))
    assert pytree._broadcast_to_and_flatten(value, spec) == leaves
    for path, leaf in pytree.tree_leaves_with_path(value):
        assert pytree.key_get(value, path) is leaf


@given(trees(st.integers()))
def test_trees_are_pytorchs(value):
    theirs = pytest.importorskip("torch.utils._pytree")
    leaves, spec = theirs.tree_flatten(value)
    ours = pytree.tree_structure(value)
    assert pytree.tree_leaves(value) == leaves
    assert repr(ours) == repr(spec)
    assert (ours.num_leaves, ours.num_nodes, ours.num_children) == (
        spec.num_leaves,
        spec.num_nodes,
        spec.num_children,
    )


def test_classes_that_are_nodes(tree):
    for known in (tuple, list, dict):
        assert known in tree.SUPPORTED_NODES
    assert int not in tree.SUPPORTED_NODES
