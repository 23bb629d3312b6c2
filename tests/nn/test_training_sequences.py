"""Ten steps of training, and checkpoints that go from one library to the other."""

import io

import pytest

import wengert

torch = pytest.importorskip("torch")

from nn.both import LIBS, assert_same, pair, tensors  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")


def char_model(kind):
    """A character model on a recurrent network or a transformer."""

    def build(lib):
        class Model(lib.nn.Module):
            def __init__(self):
                super().__init__()
                self.table = lib.nn.Embedding(3, 4)
                if kind == "Transformer":
                    layer = lib.nn.TransformerEncoderLayer(4, 2, 6, dropout=0.0)
                    self.body = lib.nn.TransformerEncoder(layer, 2)
                else:
                    self.body = getattr(lib.nn, kind)(4, 4, 2)
                self.last = lib.nn.Linear(4, 3)

            def forward(self, x):
                x = self.table(x)
                if kind == "Transformer":
                    mask = lib.nn.Transformer.generate_square_subsequent_mask(len(x))
                    x = self.body(x, mask.to(x.dtype))
                else:
                    x = self.body(x)[0]
                return self.last(x)

        return Model()

    return build


def losses(lib, model, steps=10):
    x, y = tensors(lib, [5, 2], [10])
    optimizer = lib.optim.Adam(model.parameters(), lr=0.05)
    found = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x).reshape(-1, 3), y)
        loss.backward()
        lib.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        found.append(loss.detach())
    return found


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN", "Transformer"])
def test_training(kind):
    ours, theirs = pair(char_model(kind))
    assert_same(losses(wengert, ours), losses(torch, theirs), tolerance=1e-8)
    assert_same(list(ours.parameters()), list(theirs.parameters()), tolerance=1e-7)


@pytest.mark.parametrize("kind", ["LSTM", "Transformer"])
def test_checkpoints(kind):
    build = char_model(kind)
    for source, target in (LIBS, LIBS[::-1]):
        model = build(source)
        file = io.BytesIO()
        source.save(model.state_dict(), file)
        file.seek(0)
        other = build(target)
        other.load_state_dict(target.load(file))
        assert_same(
            *([m(tensors(lib, [5, 2])[0]) for lib, m in found]
              for found in ([(source, model)], [(target, other)])),
            tolerance=1e-5,
        )  # fmt: skip
