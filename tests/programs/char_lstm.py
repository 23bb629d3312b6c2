"""Characters predicted by an LSTM with a state carried from chunk to chunk."""

import torch
import torch.nn as nn
from torch.nn.utils import clip_grad_norm_

TEXT = (
    "It is a truth universally acknowledged, that a single man in possession of a good fortune, "
    "must be in want of a wife. However little known the feelings or views of such a man may be "
    "on his first entering a neighbourhood, this truth is so well fixed in the minds of the "
    "surrounding families, that he is considered as the rightful property of some one or other."
)


class Dictionary(object):
    def __init__(self, text):
        self.idx2char = sorted(set(text))
        self.char2idx = {c: i for i, c in enumerate(self.idx2char)}

    def __len__(self):
        return len(self.idx2char)


class CharLSTM(nn.Module):
    def __init__(self, vocab_size, embed_size, hidden_size, num_layers):
        super(CharLSTM, self).__init__()
        self.embed = nn.Embedding(vocab_size, embed_size)
        self.lstm = nn.LSTM(embed_size, hidden_size, num_layers, batch_first=True, dropout=0.2)
        self.linear = nn.Linear(hidden_size, vocab_size)
        self.init_weights(0.1)

    def init_weights(self, bound):
        self.embed.weight.data.uniform_(-bound, bound)
        self.linear.bias.data.zero_()
        self.linear.weight.data.uniform_(-bound, bound)

    def forward(self, x, h):
        out, (h, c) = self.lstm(self.embed(x), h)
        out = out.reshape(out.size(0) * out.size(1), out.size(2))
        return self.linear(out), (h, c)


def detach(states):
    return [state.detach() for state in states]


torch.manual_seed(42)
corpus = Dictionary(TEXT)
batch_size, seq_length, hidden_size, num_layers = 4, 16, 32, 2
ids = torch.LongTensor([corpus.char2idx[c] for c in TEXT])
ids = ids[: ids.size(0) // batch_size * batch_size].view(batch_size, -1)

model = CharLSTM(len(corpus), 16, hidden_size, num_layers)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(10):
    states = (
        torch.zeros(num_layers, batch_size, hidden_size),
        torch.zeros(num_layers, batch_size, hidden_size),
    )
    losses = []
    for i in range(0, ids.size(1) - seq_length, seq_length):
        inputs = ids[:, i : i + seq_length]
        targets = ids[:, (i + 1) : (i + 1) + seq_length]
        states = detach(states)
        outputs, states = model(inputs, tuple(states))
        loss = criterion(outputs, targets.reshape(-1))
        model.zero_grad()
        loss.backward()
        norm = clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        losses.append(loss.item())
    print("epoch %d, loss: %.7f, norm: %.5f" % (epoch, sum(losses) / len(losses), norm))

model.eval()
with torch.no_grad():
    state = (torch.zeros(num_layers, 1, hidden_size), torch.zeros(num_layers, 1, hidden_size))
    prob = torch.ones(len(corpus))
    char = torch.multinomial(prob, num_samples=1).unsqueeze(1)
    sampled = []
    for _ in range(40):
        output, state = model(char, state)
        prob = output.softmax(-1).squeeze(0)
        char_id = torch.multinomial(prob, num_samples=1).item()
        char.fill_(char_id)
        sampled.append(corpus.idx2char[char_id])
print("sample", repr("".join(sampled)))
