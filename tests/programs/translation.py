"""nn.Transformer translating one made-up language into another."""

import math
from timeit import default_timer as timer

import torch
import torch.nn as nn
from torch import Tensor
from torch.nn import Transformer
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset

PAD_IDX, BOS_IDX, EOS_IDX = 0, 1, 2
DEVICE = torch.device("cpu")


class PositionalEncoding(nn.Module):
    def __init__(self, emb_size: int, dropout: float, maxlen: int = 50):
        super(PositionalEncoding, self).__init__()
        den = torch.exp(-torch.arange(0, emb_size, 2) * math.log(10000) / emb_size)
        pos = torch.arange(0, maxlen).reshape(maxlen, 1)
        pos_embedding = torch.zeros((maxlen, emb_size))
        pos_embedding[:, 0::2] = torch.sin(pos * den)
        pos_embedding[:, 1::2] = torch.cos(pos * den)
        pos_embedding = pos_embedding.unsqueeze(-2)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("pos_embedding", pos_embedding)

    def forward(self, token_embedding: Tensor):
        return self.dropout(token_embedding + self.pos_embedding[: token_embedding.size(0), :])


class TokenEmbedding(nn.Module):
    def __init__(self, vocab_size: int, emb_size):
        super().__init__()
        self.embedding = nn.Embedding(vocab_size, emb_size)
        self.emb_size = emb_size

    def forward(self, tokens: Tensor):
        return self.embedding(tokens.long()) * math.sqrt(self.emb_size)


class Seq2SeqTransformer(nn.Module):
    def __init__(self, layers, emb_size, nhead, src_vocab, tgt_vocab, feedforward, dropout=0.1):
        super().__init__()
        self.transformer = Transformer(
            d_model=emb_size,
            nhead=nhead,
            num_encoder_layers=layers,
            num_decoder_layers=layers,
            dim_feedforward=feedforward,
            dropout=dropout,
        )
        self.generator = nn.Linear(emb_size, tgt_vocab)
        self.src_tok_emb = TokenEmbedding(src_vocab, emb_size)
        self.tgt_tok_emb = TokenEmbedding(tgt_vocab, emb_size)
        self.positional_encoding = PositionalEncoding(emb_size, dropout=dropout)

    def forward(self, src, trg, src_mask, tgt_mask, src_padding, tgt_padding, memory_padding):
        src_emb = self.positional_encoding(self.src_tok_emb(src))
        tgt_emb = self.positional_encoding(self.tgt_tok_emb(trg))
        outs = self.transformer(
            src_emb, tgt_emb, src_mask, tgt_mask, None, src_padding, tgt_padding, memory_padding
        )
        return self.generator(outs)

    def encode(self, src: Tensor, src_mask: Tensor):
        return self.transformer.encoder(self.positional_encoding(self.src_tok_emb(src)), src_mask)

    def decode(self, tgt: Tensor, memory: Tensor, tgt_mask: Tensor):
        embedded = self.positional_encoding(self.tgt_tok_emb(tgt))
        return self.transformer.decoder(embedded, memory, tgt_mask)


def generate_square_subsequent_mask(sz):
    mask = (torch.triu(torch.ones((sz, sz), device=DEVICE)) == 1).transpose(0, 1)
    return mask.float().masked_fill(mask == 0, float("-inf")).masked_fill(mask == 1, float(0.0))


def create_mask(src, tgt):
    src_seq_len, tgt_seq_len = src.shape[0], tgt.shape[0]
    tgt_mask = generate_square_subsequent_mask(tgt_seq_len)
    src_mask = torch.zeros((src_seq_len, src_seq_len), device=DEVICE).type(torch.bool)
    src_padding_mask = (src == PAD_IDX).transpose(0, 1)
    # nn.Transformer warns where masks differ in dtype
    tgt_padding_mask = torch.zeros(tgt.T.shape).masked_fill(tgt.T == PAD_IDX, float("-inf"))
    return src_mask, tgt_mask, src_padding_mask, tgt_padding_mask


class Pairs(Dataset):
    """Sentences, and their words exchanged in pairs and renamed."""

    def __init__(self, n):
        lengths = torch.randint(3, 9, (n,))
        self.sentences = [torch.randint(3, 13, (int(length),)) for length in lengths]

    def __len__(self):
        return len(self.sentences)

    def __getitem__(self, i):
        src = self.sentences[i]
        order = torch.arange(len(src))
        even = len(src) // 2 * 2
        order[:even] = order[:even].view(-1, 2).flip(1).reshape(-1)
        return src, (src[order] - 3 + 5) % 10 + 3


def collate_fn(batch):
    ends = torch.tensor([BOS_IDX]), torch.tensor([EOS_IDX])
    src, tgt = ([torch.cat((ends[0], s, ends[1])) for s in each] for each in zip(*batch))
    return pad_sequence(src, padding_value=PAD_IDX), pad_sequence(tgt, padding_value=PAD_IDX)


torch.manual_seed(0)
model = Seq2SeqTransformer(2, 32, 4, 13, 13, 64)
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
model = model.to(DEVICE)
loss_fn = torch.nn.CrossEntropyLoss(ignore_index=PAD_IDX)
optimizer = torch.optim.Adam(model.parameters(), lr=0.002, betas=(0.9, 0.98), eps=1e-9)
loader = DataLoader(Pairs(32), batch_size=16, shuffle=True, collate_fn=collate_fn)


def train_epoch():
    model.train()
    losses = 0
    for src, tgt in loader:
        src, tgt = src.to(DEVICE), tgt.to(DEVICE)
        tgt_input = tgt[:-1, :]
        src_mask, tgt_mask, src_padding, tgt_padding = create_mask(src, tgt_input)
        logits = model(src, tgt_input, src_mask, tgt_mask, src_padding, tgt_padding, src_padding)
        optimizer.zero_grad()
        tgt_out = tgt[1:, :]
        loss = loss_fn(logits.reshape(-1, logits.shape[-1]), tgt_out.reshape(-1))
        loss.backward()
        optimizer.step()
        losses += loss.item()
    return losses / len(list(loader))


for epoch in range(1, 11):
    start_time = timer()
    train_loss = train_epoch()
    assert timer() > start_time
    print(f"Epoch: {epoch}, Train loss: {train_loss:.7f}")


def greedy_decode(src, src_mask, max_len):
    memory = model.encode(src, src_mask)
    ys = torch.ones(1, 1).fill_(BOS_IDX).type(torch.long)
    for _ in range(max_len - 1):
        tgt_mask = generate_square_subsequent_mask(ys.size(0)).type(torch.bool)
        out = model.decode(ys, memory, tgt_mask).transpose(0, 1)
        next_word = torch.max(model.generator(out[:, -1]), dim=1)[1].item()
        ys = torch.cat([ys, torch.ones(1, 1).type_as(src.data).fill_(next_word)], dim=0)
        if next_word == EOS_IDX:
            break
    return ys


model.eval()
src = torch.arange(3, 9).view(-1, 1)
print("translation", greedy_decode(src, torch.zeros(6, 6).type(torch.bool), 8).flatten().tolist())
