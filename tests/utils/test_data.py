"""Datasets, samplers and loaders in this process: batches and their order are PyTorch's."""

import collections
import copy
import importlib
import pickle

import numpy as np
import pytest

import wengert

Pair = collections.namedtuple("Pair", "x y")


@pytest.fixture
def data(lib):
    return importlib.import_module(f"{lib.__name__}.utils.data")


def plain(value):
    """Tensors within containers as lists, with their types."""
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return str(value.dtype).split(".")[-1], value.tolist()
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, tuple):
        named = hasattr(value, "_fields")
        return (type(value).__name__ if named else "tuple", *[plain(each) for each in value])
    return [plain(each) for each in value] if isinstance(value, list) else value


def same_in_both(run, seed=3):
    """What `run(lib, data)` gives with both libraries and the same seed, and the states after."""
    torch = pytest.importorskip("torch")
    import torch.utils.data as theirs

    results = []
    for library, module in ((wengert, wengert.utils.data), (torch, theirs)):
        library.manual_seed(seed)
        results.append((plain(run(library, module)), library.get_rng_state().tolist()))
    ours, expected = results
    assert ours == expected
    return ours[0]


class TestDatasets:
    def test_tensors(self, lib, data):
        made = data.TensorDataset(lib.arange(6).view(3, 2), lib.arange(3))
        assert len(made) == 3
        assert plain(made[1]) == ("tuple", ("int64", [2, 3]), ("int64", 1))
        assert plain(made[0:2])[2] == ("int64", [0, 1])
        with pytest.raises(AssertionError, match="Size mismatch between tensors"):
            data.TensorDataset(lib.ones(2), lib.ones(3))

    def test_concatenation(self, data):
        class Letters(data.Dataset):
            def __init__(self, text):
                self.text = text

            def __getitem__(self, index):
                return self.text[index]

            def __len__(self):
                return len(self.text)

        both = Letters("abc") + Letters("de")
        assert isinstance(both, data.ConcatDataset) and both.cumulative_sizes == [3, 5]
        assert len(both) == 5 and [both[i] for i in range(-5, 5)] == list("abcdeabcde")
        with pytest.raises(ValueError, match="absolute value of index should not exceed"):
            both[-6]
        with pytest.raises(IndexError):
            both[5]
        with pytest.raises(AssertionError, match="empty iterable"):
            data.ConcatDataset([])
        with pytest.warns(FutureWarning, match="renamed"):
            assert both.cummulative_sizes == [3, 5]
        with pytest.raises(NotImplementedError, match="should implement __getitem__"):
            data.Dataset()[0]
        with pytest.raises(TypeError):
            len(data.Dataset())

    def test_chains(self, data):
        class Row(data.IterableDataset):
            def __iter__(self):
                return iter((1, 2))

            def __len__(self):
                return 2

        both = Row() + Row()
        assert list(both) == [1, 2, 1, 2] and len(both) == 4
        assert isinstance(both, data.ChainDataset)
        with pytest.raises(AssertionError, match="only supports IterableDataset"):
            list(data.ChainDataset([[1]]))
        with pytest.raises(AssertionError, match="does not support IterableDataset"):
            data.ConcatDataset([Row()])

    def test_stacks(self, lib, data):
        first, second = [1, 2, 3], data.TensorDataset(lib.arange(3))
        assert plain(data.StackDataset(first, second)[1]) == ("tuple", 2, ("tuple", ("int64", 1)))
        named = data.StackDataset(a=first, b="xyz")
        assert named[2] == {"a": 3, "b": "z"} and len(named) == 3
        assert named.__getitems__([0, 2]) == [{"a": 1, "b": "x"}, {"a": 3, "b": "z"}]
        assert data.StackDataset(first, "xyz").__getitems__([1]) == [(2, "y")]
        for arguments, options, phrase in (
            ((first,), {"a": first}, "both types are given"),
            ((), {}, "At least one dataset"),
            ((first, [1]), {}, "Size mismatch between datasets"),
        ):
            with pytest.raises(ValueError, match=phrase):
                data.StackDataset(*arguments, **options)

        class Short(list):
            def __getitems__(self, indices):
                return [0]

        with pytest.raises(ValueError, match="Expected 2, got 1"):
            data.StackDataset(Short([1, 2])).__getitems__([0, 1])

    def test_subsets(self, lib, data):
        part = data.Subset(list("abcde"), [4, 2])
        assert [part[0], part[1], len(part)] == ["e", "c", 2]
        assert part.__getitems__([1, 0]) == ["c", "e"]
        tensors = data.Subset(data.TensorDataset(lib.arange(5)), [4, 2])
        assert plain(tensors[[0, 1]]) == ("tuple", ("int64", [4, 2]))

        class Half(data.Subset):
            def __getitem__(self, index):
                return 0

        with pytest.raises(NotImplementedError, match="__getitems__"):
            Half([1], [0])

    def test_random_split(self, data):
        def run(lib, data):
            by_length = data.random_split(range(10), [3, 7])
            by_share = data.random_split(range(11), [0.3, 0.3, 0.4], lib.Generator().manual_seed(1))
            return [part.indices for part in (*by_length, *by_share)]

        assert [len(part) for part in same_in_both(run)] == [3, 7, 4, 3, 4]
        with pytest.raises(ValueError, match="does not equal the length"):
            data.random_split(range(3), [1, 1])
        with pytest.raises(ValueError, match="Fraction at index 0 is not between 0 and 1"):
            data.random_split(range(3), [-0.5, 1.5])
        with pytest.warns(UserWarning, match="Length of split at index 1 is 0"):
            data.random_split(range(1), [0.5, 0.5])

    def test_subscripts_and_pickles(self, lib, data):
        assert data.Dataset[int] and data.DataLoader[int]
        made = data.TensorDataset(lib.arange(3))
        assert plain(pickle.loads(pickle.dumps(made))[2]) == ("tuple", ("int64", 2))
        assert len(copy.deepcopy(data.DataLoader(made, 2))) == 2


class TestSamplers:
    @pytest.mark.parametrize(
        "call",
        [
            "SequentialSampler(range(5))",
            "RandomSampler(range(10))",
            "RandomSampler(range(10), num_samples=25)",
            "RandomSampler(range(10), True)",
            "RandomSampler(range(10), True, 70)",
            "RandomSampler(range(10), generator=lib.Generator().manual_seed(4))",
            "SubsetRandomSampler([5, 3, 8])",
            "WeightedRandomSampler([0.1, 0.9, 0.4, 3.0], 9)",
            "WeightedRandomSampler([0.1, 0.9, 0.4, 3.0], 3, replacement=False)",
            "BatchSampler(data.RandomSampler(range(10)), 3, False)",
            "BatchSampler(range(10), 3, True)",
        ],
    )
    def test_indices(self, call):
        def run(lib, data):
            made = eval(f"data.{call}", {"data": data, "lib": lib})
            first, second = list(made), list(made)
            return [first, second, len(made)]

        first, _, length = same_in_both(run)
        assert len(first) == length

    @pytest.mark.parametrize(
        "call, error, phrase",
        [
            ("RandomSampler([1], replacement=1)", TypeError, "replacement should be a boolean"),
            ("RandomSampler([])", ValueError, "num_samples should be a positive integer"),
            ("WeightedRandomSampler([1.0], 0)", ValueError, "num_samples should be a positive"),
            ("WeightedRandomSampler([1.0], 1, 3)", ValueError, "replacement should be a boolean"),
            ("WeightedRandomSampler([[1.0]], 1)", ValueError, "should be a 1d sequence"),
            ("BatchSampler([1], 0, False)", ValueError, "batch_size should be a positive integer"),
            ("BatchSampler([1], True, False)", ValueError, "batch_size should be a positive"),
            ("BatchSampler([1], 1, 0)", ValueError, "drop_last should be a boolean value"),
        ],
    )
    def test_refusals(self, data, call, error, phrase):
        with pytest.raises(error, match=phrase):
            eval(f"data.{call}", {"data": data})

    def test_own_ones(self, data):
        with pytest.raises(NotImplementedError):
            iter(data.Sampler())
        loader = data.DataLoader(list("abcd"), 2, sampler=[3, 1, 0])
        assert list(loader) == [["d", "b"], ["a"]] and len(loader) == 2


class TestCollation:
    @pytest.mark.parametrize(
        "batch",
        [
            "[lib.ones(2), lib.zeros(2)]",
            "[1, 2]", "[1.5, 2]", "[True, False]", "['a', 'b']", "[b'a', b'b']",
            "[np.float32(1), np.float32(2)]", "[np.int16(1), np.int16(2)]",
            "[np.arange(2), np.arange(2)]",
            "[(1, 'a'), (2, 'b')]", "[[1, 2.0], [3, 4.0]]",
            "[{'a': 1, 'b': lib.ones(1)}, {'a': 2, 'b': lib.zeros(1)}]",
            "[Pair(1, 2.0), Pair(3, 4.0)]",
            "[{'deep': [(1, {'x': 2})]}, {'deep': [(3, {'x': 4})]}]",
        ],
    )  # fmt: skip
    def test_same_batches(self, batch):
        names = {"np": np, "Pair": Pair}

        def run(lib, data):
            examples = eval(batch, {**names, "lib": lib})
            return [data.default_collate(examples), data.default_convert(examples)]

        same_in_both(run)

    def test_classes_are_kept(self, data):
        ordered = collections.OrderedDict(b=1, a=2)
        made = data.default_collate([ordered, ordered])
        assert type(made) is collections.OrderedDict and list(made) == ["b", "a"]
        made = data.default_collate([collections.UserList([1, 2])] * 2)
        assert type(made) is collections.UserList

    @pytest.mark.parametrize(
        "batch, error, phrase",
        [
            ([[1], [1, 2]], RuntimeError, "should be of equal size"),
            ([object()], TypeError, "batch must contain tensors, numpy arrays, numbers"),
            ([np.array(["a"])], TypeError, "batch must contain tensors"),
        ],
    )
    def test_refusals(self, data, batch, error, phrase):
        with pytest.raises(error, match=phrase):
            data.default_collate(batch)


class TestLoader:
    @pytest.mark.parametrize(
        "options",
        [
            "", "batch_size=3", "batch_size=3, drop_last=True", "batch_size=4, shuffle=True",
            "batch_size=4, shuffle=True, generator=lib.Generator().manual_seed(8)",
            "batch_size=None", "batch_size=None, shuffle=True",
            "batch_sampler=[[1, 2], [5]]",
            "batch_size=2, sampler=data.SubsetRandomSampler([1, 5, 3])",
            "batch_size=3, collate_fn=lambda examples: len(examples)",
            "batch_size=3, pin_memory=True",
        ],
    )  # fmt: skip
    @pytest.mark.filterwarnings("ignore:.*pin_memory")
    def test_batches(self, options):
        def run(lib, data):
            dataset = data.TensorDataset(lib.arange(20).view(10, 2), lib.arange(10) / 2)
            loader = eval(f"data.DataLoader(dataset, {options})", {**locals()})
            return [list(loader), list(loader), len(loader), lib.rand(2)]

        same_in_both(run)

    @pytest.mark.parametrize("options", ["", "batch_size=3", "batch_size=3, drop_last=True",
                                         "batch_size=None"])  # fmt: skip
    def test_rows(self, options):
        def run(lib, data):
            class Row(data.IterableDataset):
                def __iter__(self):
                    return iter(lib.randint(9, (8,)))

                def __len__(self):
                    return 8

            loader = eval(f"data.DataLoader(Row(), {options})", {**locals()})
            return [list(loader), list(loader), len(loader)]

        same_in_both(run)

    def test_wrong_length(self, data):
        class Row(data.IterableDataset):
            def __iter__(self):
                return iter(range(4))

            def __len__(self):
                return 2

        loader = data.DataLoader(Row(), batch_size=None)
        assert len(loader) == 2
        with pytest.warns(UserWarning, match="was reported to be 2.*but 3 samples"):
            list(loader)

    def test_fetching_at_once(self, data):
        class Asked(data.Dataset):
            def __getitems__(self, indices):
                return [-index for index in indices]

            def __len__(self):
                return 3

        assert [each.tolist() for each in data.DataLoader(Asked(), 2)] == [[0, -1], [-2]]

    @pytest.mark.parametrize(
        "options, phrase",
        [
            ({"num_workers": -1}, "num_workers option should be non-negative"),
            ({"timeout": -1}, "timeout option should be non-negative"),
            ({"prefetch_factor": 2}, "prefetch_factor option could only be specified in"),
            ({"num_workers": 1, "prefetch_factor": -1}, "prefetch_factor option should be non-neg"),
            ({"persistent_workers": True}, "persistent_workers option needs num_workers > 0"),
            ({"sampler": [1], "shuffle": True}, "sampler option is mutually exclusive with shuf"),
            ({"batch_sampler": [[1]], "batch_size": 3}, "batch_sampler option is mutually excl"),
            ({"batch_size": None, "drop_last": True}, "batch_size=None option disables auto-batch"),
            ({"batch_size": 0}, "batch_size should be a positive integer"),
            ({"multiprocessing_context": "fork"}, "multiprocessing_context can only be used with"),
            ({"num_workers": 1, "multiprocessing_context": "tea"}, "a valid start method"),
        ],
    )
    def test_refusals(self, data, options, phrase):
        with pytest.raises(ValueError, match=phrase):
            data.DataLoader([1, 2, 3], **options)

    @pytest.mark.parametrize("name", ["shuffle", "sampler", "batch_sampler"])
    def test_rows_have_their_own_order(self, data, name):
        class Row(data.IterableDataset):
            def __iter__(self):
                return iter(())

        with pytest.raises(ValueError, match=f"expected unspecified {name} option"):
            data.DataLoader(Row(), **{name: True if name == "shuffle" else [[1]]})

    def test_attributes(self, data):
        loader = data.DataLoader([1, 2, 3], 2)
        assert (loader.batch_size, loader.num_workers, loader.drop_last) == (2, 0, False)
        assert isinstance(loader.sampler, data.SequentialSampler)
        for name in ("batch_size", "sampler", "dataset", "drop_last", "persistent_workers"):
            with pytest.raises(ValueError, match=f"{name} attribute should not be set after"):
                setattr(loader, name, 3)
        loader.collate_fn = sum
        assert list(loader) == [3, 3]
        with pytest.raises(NotImplementedError, match="cannot be pickled"):
            pickle.dumps(iter(loader))
        with pytest.raises(TypeError, match="multiprocessing_context option should be a valid"):
            data.DataLoader([1], num_workers=1, multiprocessing_context=3)
        assert data.get_worker_info() is None


def test_missing_names():
    with pytest.raises(AttributeError, match="DistributedSampler': not there yet; nearest"):
        wengert.utils.data.DistributedSampler
