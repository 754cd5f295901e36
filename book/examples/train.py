"""Four steps of data-parallel training: the same file on a laptop, under torchrun, on two nodes under Slurm."""

import os

import torch
import torch.distributed as dist

from ringzero import all_reduce, launch

STEPS, BATCH = 4, 64  # of all ranks together


def train():
    rank, n = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(0)  # the same model on every rank
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    losses = []
    for _ in range(STEPS):
        inputs = torch.randn(BATCH, 8)[rank::n]  # everyone draws the whole batch and takes its share
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            all_reduce(parameter.grad, "avg")
        optimizer.step()
        losses.append(all_reduce(loss.detach(), "avg").item())
    return losses


if __name__ == "__main__":
    ranks = launch(train, timeout=600)  # seconds; the 20 of a notebook are soon over in training
    if int(os.environ.get("RANK", 0)) == 0:  # under torchrun every rank gets here
        print(f"{ranks.world_size} ranks:", *(f"{loss:.4f}" for loss in ranks.returns[0]))
