"""Sequences reversed by an encoder and a decoder with attention, of varied length."""

import random

import torch
from torch import nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, SOS, EOS = 0, 1, 2
VOCAB = 12


class Encoder(nn.Module):
    def __init__(self, vocab, emb, hid):
        super().__init__()
        self.embedding = nn.Embedding(vocab, emb, padding_idx=PAD)
        self.rnn = nn.GRU(emb, hid, bidirectional=True)
        self.fc = nn.Linear(hid * 2, hid)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.embedding(src), lengths, enforce_sorted=False)
        outputs, hidden = self.rnn(packed)
        outputs, _ = pad_packed_sequence(outputs)
        hidden = torch.tanh(self.fc(torch.cat((hidden[-2, :, :], hidden[-1, :, :]), dim=1)))
        return outputs, hidden


class Attention(nn.Module):
    def __init__(self, hid):
        super().__init__()
        self.attn = nn.Linear(hid * 2 + hid, hid)
        self.v = nn.Linear(hid, 1, bias=False)

    def forward(self, hidden, encoder_outputs, mask):
        src_len = encoder_outputs.shape[0]
        hidden = hidden.unsqueeze(1).repeat(1, src_len, 1)
        encoder_outputs = encoder_outputs.permute(1, 0, 2)
        energy = torch.tanh(self.attn(torch.cat((hidden, encoder_outputs), dim=2)))
        attention = self.v(energy).squeeze(2)
        attention = attention.masked_fill(mask == 0, -1e10)
        return F.softmax(attention, dim=1)


class Decoder(nn.Module):
    def __init__(self, vocab, emb, hid, attention):
        super().__init__()
        self.attention = attention
        self.embedding = nn.Embedding(vocab, emb)
        self.rnn = nn.GRU(hid * 2 + emb, hid)
        self.fc_out = nn.Linear(hid * 3 + emb, vocab)

    def forward(self, token, hidden, encoder_outputs, mask):
        embedded = self.embedding(token.unsqueeze(0))
        a = self.attention(hidden, encoder_outputs, mask).unsqueeze(1)
        weighted = torch.bmm(a, encoder_outputs.permute(1, 0, 2)).permute(1, 0, 2)
        output, hidden = self.rnn(torch.cat((embedded, weighted), dim=2), hidden.unsqueeze(0))
        assert (output == hidden).all()
        prediction = self.fc_out(
            torch.cat((output.squeeze(0), weighted.squeeze(0), embedded.squeeze(0)), dim=1)
        )
        return prediction, hidden.squeeze(0)


class Seq2Seq(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(self, src, lengths, trg, teacher_forcing_ratio=0.5):
        outputs = torch.zeros(trg.shape[0], trg.shape[1], VOCAB)
        encoder_outputs, hidden = self.encoder(src, lengths)
        mask = (src != PAD).permute(1, 0)
        token = trg[0, :]
        for t in range(1, trg.shape[0]):
            output, hidden = self.decoder(token, hidden, encoder_outputs, mask)
            outputs[t] = output
            token = trg[t] if random.random() < teacher_forcing_ratio else output.argmax(1)
        return outputs


def init_weights(m):
    for name, param in m.named_parameters():
        if "weight" in name:
            nn.init.normal_(param.data, mean=0, std=0.1)
        else:
            nn.init.constant_(param.data, 0)


def batch(size):
    lengths = torch.randint(3, 8, (size,))
    sources = [torch.randint(3, VOCAB, (n,)) for n in lengths.tolist()]
    ends = torch.tensor([EOS])
    targets = [torch.cat((torch.tensor([SOS]), s.flip(0), ends)) for s in sources]
    return pad_sequence(sources, padding_value=PAD), lengths, pad_sequence(targets)


random.seed(7)
torch.manual_seed(7)
model = Seq2Seq(Encoder(VOCAB, 12, 24), Decoder(VOCAB, 12, 24, Attention(24)))
model.apply(init_weights)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss(ignore_index=PAD)
for step in range(10):
    src, lengths, trg = batch(16)
    optimizer.zero_grad()
    output = model(src, lengths, trg)
    loss = criterion(output[1:].view(-1, output.shape[-1]), trg[1:].view(-1))
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), max_norm=1)
    optimizer.step()
    print(f"{step:03d} loss: {loss.item():.7f} ppl {torch.exp(loss.detach()):.3f}")
