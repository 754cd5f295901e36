"""picotron's shape: a device mesh, a pipeline of stages by send and receive, and gradients averaged by hand.

The ranks are a mesh of data parallel ranks and two stages; for two ranks, of stages alone. With --hang the first stage
asks for the gradient of a micro-batch that it has not sent.
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh

WIDTH, MICRO_BATCHES, STAGES = 512, 4, 2


def main(steps, hang):
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    mesh = init_device_mesh("cpu", (dist.get_world_size() // STAGES, STAGES), mesh_dim_names=("dp", "pp"))
    replicas, stages = mesh.get_group("dp"), mesh.get_group("pp")
    stage, peer = mesh.get_local_rank("pp"), 1 - mesh.get_local_rank("pp")
    model = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    seconds = []
    for step in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        for micro_batch in range(MICRO_BATCHES):
            if stage == 0:
                outputs = model(torch.randn(32, WIDTH))
                if not (hang and step == steps // 2 and micro_batch == MICRO_BATCHES - 1):
                    dist.send(outputs.detach(), group=stages, group_dst=peer)
                gradients = torch.empty_like(outputs)
                dist.recv(gradients, group=stages, group_src=peer)
                outputs.backward(gradients)
            else:
                inputs = torch.empty(32, WIDTH)
                dist.recv(inputs, group=stages, group_src=peer)
                inputs.requires_grad_()
                model(inputs).square().mean().backward()
                dist.send(inputs.grad, group=stages, group_dst=peer)
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, group=replicas)
            parameter.grad /= replicas.size()
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    if dist.get_rank() == 0:
        print("seconds", *seconds[len(seconds) // 4 :])
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--hang", action="store_true")
    main(**vars(parser.parse_args()))
