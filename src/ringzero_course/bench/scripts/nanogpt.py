"""nanoGPT's loop: micro-batches of which only the last synchronizes, clipping, and an evaluation now and then.

With --hang the evaluation, of the master alone, averages its loss over the ranks.
"""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

VOCABULARY, WIDTH, LENGTH = 256, 128, 64


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.attention = nn.MultiheadAttention(WIDTH, 4, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))

    def forward(self, x):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        normed = self.norms[0](x)
        x = x + self.attention(normed, normed, normed, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norms[1](x))


class GPT(nn.Module):
    def __init__(self, layers=3):
        super().__init__()
        self.tokens, self.places = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(layers)))
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, inputs, targets):
        x = self.tokens(inputs) + self.places(torch.arange(inputs.shape[1]))
        logits = self.head(self.blocks(x))
        return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def get_batch():
    tokens = torch.randint(VOCABULARY, (8, LENGTH + 1))
    return tokens[:, :-1], tokens[:, 1:]


@torch.no_grad()
def estimate_loss(model, averages):
    loss = model(*get_batch())
    if averages:
        dist.all_reduce(loss)
    return loss


def main(steps, hang):
    dist.init_process_group("gloo")
    torch.manual_seed(1337 + int(os.environ["RANK"]))
    master_process, accumulation = int(os.environ["RANK"]) == 0, 2
    model = DistributedDataParallel(GPT())
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4)
    seconds = []
    for step in range(steps):
        if step % 10 == 0 and master_process:
            estimate_loss(model.module, averages=hang and step > 0)
        start = time.perf_counter()
        for micro_step in range(accumulation):
            model.require_backward_grad_sync = micro_step == accumulation - 1
            (model(*get_batch()) / accumulation).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        seconds.append(time.perf_counter() - start)
    if master_process:
        print("seconds", *seconds[len(seconds) // 4 :])
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--hang", action="store_true")
    main(**vars(parser.parse_args()))
