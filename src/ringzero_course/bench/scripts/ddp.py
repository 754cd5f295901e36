"""PyTorch's example of DistributedDataParallel: a dataset, a DistributedSampler, one epoch.

With --hang the last rank drops its last batch: the others wait for it in their backward pass.
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def main(steps, hang):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    rank, world_size, width = dist.get_rank(), dist.get_world_size(), 512
    samples = TensorDataset(torch.randn(steps * 64 * world_size, width), torch.randn(steps * 64 * world_size, 10))
    loader = DataLoader(samples, batch_size=64, sampler=DistributedSampler(samples))
    layers = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)]
    model = DistributedDataParallel(nn.Sequential(*layers))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seconds = []
    for step, (inputs, targets) in enumerate(loader):
        if hang and rank == world_size - 1 and step == steps - 1:
            break
        start = time.perf_counter()
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), targets).backward()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    if rank == 0:
        print("seconds", *seconds[len(seconds) // 4 :])
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--hang", action="store_true")
    main(**vars(parser.parse_args()))
