"""Transformers written with torch alone, small or on the meta device, for the formulas to be compared with."""

import math

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.checkpoint import checkpoint


def attend(query, key, value, dropout=0.0):
    scores = query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])
    weights = F.softmax(scores, dim=-1)
    return (F.dropout(weights, dropout) if dropout else weights) @ value


def split_heads(x, heads):
    """(batch, sequence, heads * size) -> (batch, heads, sequence, size)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class Block(nn.Module):
    """The layer of GPT-2 and of Korthikanti et al. 2022: LayerNorm, attention, dropout, LayerNorm, MLP, dropout.

    ``attention`` is "stored", "recomputed" or "flash" (torch's fused kernel, which takes no dropout on a CPU).
    """

    def __init__(self, hidden, heads, dropout=0.0, attention="stored"):
        super().__init__()
        self.heads, self.dropout, self.attention = heads, dropout, attention
        self.first_norm, self.second_norm = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.qkv, self.projection = nn.Linear(hidden, 3 * hidden), nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)

    def core(self, query, key, value):
        if self.attention == "flash":
            return F.scaled_dot_product_attention(query, key, value)
        if self.attention == "recomputed":
            return checkpoint(attend, query, key, value, self.dropout, use_reentrant=False)
        return attend(query, key, value, self.dropout)

    def drop(self, x):
        return F.dropout(x, self.dropout) if self.dropout else x

    def forward(self, x):
        heads = [split_heads(part, self.heads) for part in self.qkv(self.first_norm(x)).chunk(3, dim=-1)]
        x = x + self.drop(self.projection(self.core(*heads).transpose(1, 2).flatten(2)))
        return x + self.drop(self.down(F.gelu(self.up(self.second_norm(x)))))


class Gpt(nn.Module):
    def __init__(self, layers, hidden, vocab, positions, heads, **block):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, hidden), nn.Embedding(positions, hidden)
        self.blocks = nn.Sequential(*[Block(hidden, heads, **block) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, vocab, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        return self.head(self.norm(self.blocks(x)))


class LlamaBlock(nn.Module):
    def __init__(self, hidden, heads, kv_heads, ffn):
        super().__init__()
        self.heads, self.kv_heads, size = heads, kv_heads, hidden // heads
        self.first_norm, self.second_norm = nn.RMSNorm(hidden), nn.RMSNorm(hidden)
        self.query, self.projection = (nn.Linear(hidden, hidden, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(hidden, kv_heads * size, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(hidden, ffn, bias=False) for _ in range(2))
        self.down = nn.Linear(ffn, hidden, bias=False)

    def forward(self, x):
        y = self.first_norm(x)
        query = split_heads(self.query(y), self.heads)
        key, value = (
            split_heads(part(y), self.kv_heads).repeat_interleave(self.heads // self.kv_heads, dim=1)
            for part in (self.key, self.value)
        )
        x = x + self.projection(attend(query, key, value).transpose(1, 2).flatten(2))
        y = self.second_norm(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Llama(nn.Module):
    def __init__(self, layers, hidden, vocab, ffn, heads, kv_heads, tied_embeddings):
        super().__init__()
        self.tokens, self.head = nn.Embedding(vocab, hidden), nn.Linear(hidden, vocab, bias=False)
        if tied_embeddings:
            self.head.weight = self.tokens.weight
        self.blocks = nn.Sequential(*[LlamaBlock(hidden, heads, kv_heads, ffn) for _ in range(layers)])
        self.norm = nn.RMSNorm(hidden)


class Bert(nn.Module):
    def __init__(self, layers, hidden, vocab, positions, heads, segments=2, pooler=True):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, hidden), nn.Embedding(positions, hidden)
        self.segments, self.norm = nn.Embedding(segments, hidden), nn.LayerNorm(hidden)
        self.layers = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(hidden, heads, 4 * hidden, batch_first=True), layers, enable_nested_tensor=False
        )
        self.pooler = nn.Linear(hidden, hidden) if pooler else None


def params(model):
    """Each shared parameter once."""
    return sum(p.numel() for p in model.parameters())


def kept_for_backward(model, *inputs):
    """Bytes that autograd keeps of ``model(*inputs)``: each storage once, however many views of it; no parameters."""
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}
    kept = {}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage  # held, so that its address is not given to another
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(*inputs)
    return sum(storage.nbytes() for storage in kept.values())
