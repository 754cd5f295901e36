"""PyTorch's example of FSDP2: ``fully_shard`` for each block and for the whole.

With --hang rank 0 alone saves the model: ``full_tensor`` gathers, and the others are not there.
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard


def main(steps, hang):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    rank, width = dist.get_rank(), 256
    blocks = [nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)) for _ in range(3)]
    model = nn.Sequential(*blocks)
    for block in blocks:
        fully_shard(block)
    fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    seconds = []
    for step in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        model(torch.randn(64, width)).square().mean().backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
        if hang and step == steps // 2 and rank == 0:
            {name: parameter.full_tensor() for name, parameter in model.named_parameters()}
    if rank == 0:
        print("seconds", *seconds[len(seconds) // 4 :])
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--hang", action="store_true")
    main(**vars(parser.parse_args()))
