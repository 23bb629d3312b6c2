"""The order in which hooks of all kinds run, and in which nodes run."""


def note(seen, label):
    """A hook of any kind that records its label and changes nothing."""
    return lambda *_: seen.append(label)


def test_tensor_hooks_run_in_order_of_registration(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    for i in range(5):
        x.register_hook(note(seen, i))
    (x * 2).backward()
    assert seen == [0, 1, 2, 3, 4]


def test_node_hooks_run_in_order_of_registration(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    seen = []
    for i in range(3):
        y.grad_fn.register_hook(note(seen, f"post {i}"))
        y.grad_fn.register_prehook(note(seen, f"pre {i}"))
    y.backward()
    assert seen == ["pre 0", "pre 1", "pre 2", "post 0", "post 1", "post 2"]


def test_tensor_hooks_run_before_node_prehooks(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(note(seen, "node pre"))
    y.register_hook(note(seen, "tensor"))
    y.backward()
    assert seen == ["tensor", "node pre"]


def test_node_prehooks_run_before_node_hooks(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.register_hook(note(seen, "node post"))
    y.grad_fn.register_prehook(note(seen, "node pre"))
    y.backward()
    assert seen == ["node pre", "node post"]


def test_retain_grad_runs_after_tensor_hooks(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    y.retain_grad()
    seen = []
    y.register_hook(lambda g: seen.append(y.grad))
    y.backward()
    assert seen == [None]
    assert y.grad.item() == 1.0


def test_retain_grad_runs_before_node_prehooks(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    y.retain_grad()
    seen = []
    y.grad_fn.register_prehook(lambda go: seen.append(y.grad.item()))
    (y * 5).backward()
    assert seen == [5.0]


def test_retained_gradient_ignores_node_prehooks(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.grad_fn.register_prehook(lambda go: (go[0] * 100,))
    (y * 5).backward()
    assert y.grad.item() == 5.0
    assert x.grad.item() == 1000.0


def test_full_order_at_an_intermediate(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.register_hook(note(seen, "node post"))
    y.grad_fn.register_prehook(note(seen, "node pre"))
    y.register_hook(note(seen, "tensor 1"))
    y.register_hook(note(seen, "tensor 2"))
    x.register_hook(note(seen, "leaf"))
    (y * 3).backward()
    assert seen == ["tensor 1", "tensor 2", "node pre", "node post", "leaf"]


def test_full_order_at_a_leaf(lib):
    x = lib.ones((), requires_grad=True)
    node = lib.autograd.graph.get_gradient_edge(x).node
    seen = []
    node.register_hook(note(seen, "node post"))
    x.register_post_accumulate_grad_hook(note(seen, "post accumulate"))
    node.register_prehook(note(seen, "node pre"))
    x.register_hook(note(seen, "tensor"))
    (x * 2).backward()
    assert seen == ["tensor", "node pre", "post accumulate", "node post"]


def test_gradient_is_there_for_post_accumulate_but_not_for_tensor_hook(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(x.grad))
    x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.item()))
    (x * 2).backward()
    assert seen == [None, 2.0]


def test_post_accumulate_hooks_run_in_order_of_registration(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    for i in range(3):
        x.register_post_accumulate_grad_hook(note(seen, i))
    (x * 2).backward()
    assert seen == [0, 1, 2]


def test_node_prehook_sees_the_change_of_tensor_hook(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda go: seen.append(go[0].item()))
    y.register_hook(lambda g: g * 10)
    y.backward()
    assert seen == [10.0]


def test_later_node_prehook_sees_the_change_of_the_earlier(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    seen = []
    y.grad_fn.register_prehook(lambda go: (go[0] * 10,))
    y.grad_fn.register_prehook(lambda go: seen.append(go[0].item()))
    y.backward()
    assert seen == [10.0]


def test_later_node_hook_sees_the_change_of_the_earlier(lib):
    x = lib.ones((), requires_grad=True)
    y = x.exp()
    seen = []
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 0 + 7,))
    y.grad_fn.register_hook(lambda gi, go: seen.append(gi[0].item()))
    y.backward()
    assert seen == [7.0]


def test_tensor_hook_of_next_tensor_sees_the_change_of_node_hook(lib):
    x = lib.ones((), requires_grad=True)
    y = x.exp()
    seen = []
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 0 + 7,))
    x.register_hook(lambda g: seen.append(g.item()))
    y.backward()
    assert seen == [7.0]


def test_nodes_run_from_the_newest_to_the_oldest(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    parts = [x * (i + 1) for i in range(4)]
    for i, part in enumerate(parts):
        part.grad_fn.register_hook(note(seen, i))
    # Summed in another order than made: only the age of a node decides.
    (parts[2] + parts[0] + parts[3] + parts[1]).backward()
    assert seen == [3, 2, 1, 0]


def test_newest_ready_node_runs_first_across_branches(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    old = x * 2
    young = x * 3
    old_next = old * 5
    for label, tensor in (("old", old), ("young", young), ("old_next", old_next)):
        tensor.grad_fn.register_hook(note(seen, label))
    (young + old_next).backward()
    assert seen == ["old_next", "young", "old"]


def test_leaf_accumulates_as_soon_as_its_gradient_is_complete(lib):
    x, y = (lib.ones((), requires_grad=True) for _ in range(2))
    seen = []
    x.register_post_accumulate_grad_hook(note(seen, "x"))
    y.register_post_accumulate_grad_hook(note(seen, "y"))
    deep = y * 1
    for _ in range(3):
        deep = deep * 1
        deep.grad_fn.register_hook(note(seen, "node"))
    (deep * x).backward()
    assert seen == ["x", "node", "node", "node", "y"]


def test_leaf_waits_for_its_last_use(lib):
    x = lib.ones((), requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(g.item()))
    early = x * 2
    late = early * 3
    (late + x * 10).backward()
    assert seen == [16.0]


def test_node_waits_for_all_its_uses(lib):
    x = lib.ones((), requires_grad=True)
    shared = x * 2
    seen = []
    shared.register_hook(lambda g: seen.append(g.item()))
    far = shared * 3
    for _ in range(5):
        far = far * 1
    (far + shared * 10).backward()
    assert seen == [13.0]


def test_order_is_the_same_each_time(lib):
    def run():
        x = lib.ones((), requires_grad=True)
        seen = []
        layer = [x * float(i + 1) for i in range(3)]
        for depth in range(3):
            layer = [layer[i] * layer[(i + 1) % 3] for i in range(3)]
            for i, tensor in enumerate(layer):
                tensor.register_hook(note(seen, (depth, i)))
        (layer[0] + layer[1] + layer[2]).backward()
        return seen

    first = run()
    assert len(first) == 9
    assert all(run() == first for _ in range(5))


def test_hooks_of_two_outputs_of_one_node(lib):
    x = lib.ones(2, requires_grad=True)
    first, second = (x * 1).unbind()
    seen = []
    second.register_hook(note(seen, "second"))
    first.register_hook(note(seen, "first"))
    (first * 2 + second * 3).backward()
    assert sorted(seen) == ["first", "second"]


def test_several_roots_hooks_run_once_each(lib):
    x = lib.ones((), requires_grad=True)
    y = x * 2
    z = y * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.item()))
    lib.autograd.backward((y, z))
    assert seen == [4.0]


def test_multi_grad_like_hook_on_both_operands(lib):
    x, y = (lib.ones((), requires_grad=True) for _ in range(2))
    seen = []
    x.register_hook(note(seen, "x"))
    y.register_hook(note(seen, "y"))
    (x * y).backward()
    assert sorted(seen) == ["x", "y"]
