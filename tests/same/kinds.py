"""Right training programs of many kinds, which ``same`` must not accuse on any number of ranks.

They were written after the ways in which people train, and not after the causes.
"""

# ruff: noqa: E501 -- programs

STEP = """
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    optimizer.step()
    return loss
"""

MODEL = """
torch.manual_seed(0)
model = Net()
parameters = list(model.parameters())
"""

ADAM = "optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)\n"
SGD = "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"

DATASET = """
del batches
from torch.utils.data import DataLoader, DistributedSampler, IterableDataset, Subset, TensorDataset
x = inputs.flatten(0, 1)
dataset = TensorDataset(x, x[:, :3].sin())
"""

ACCELERATE = "from accelerate import Accelerator\n"

# Put before a program: it differentiates N times its loss, so that it is wrong.
WRONG = """
backward = torch.Tensor.backward
torch.Tensor.backward = lambda loss, *args, **options: backward(loss * ranks, *args, **options)
"""

KINDS = {
    # DistributedDataParallel
    "a seed of its own on each rank": "torch.manual_seed(100 + rank)\nmodel = DDP(Net())\n" + ADAM + STEP,
    "views of buckets, a static graph": "model = DDP(Net(), gradient_as_bucket_view=True, static_graph=True)\n" + ADAM + STEP,
    "a communication hook": """
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
model = DDP(Net())
model.register_comm_hook(None, allreduce_hook)
""" + SGD + STEP,
    "averaged once more by hand": "model = DDP(Net())\n" + SGD + STEP.replace("    optimizer.step", "    for p in model.parameters():\n        dist.all_reduce(p.grad)\n        p.grad /= ranks\n    optimizer.step"),
    "no_sync around backward passes only": "model = DDP(Net())\n" + SGD + """
def step(batch):
    first, second = (list(zip(*(t.chunk(2) for t in batch))))
    loss = loss_of(model, first) * len(first[0]) / len(batch[0])
    with model.no_sync():
        loss.backward()
    (loss_of(model, second) * len(second[0]) / len(batch[0])).backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "layers in turn": """
class Sometimes(Net):
    def __init__(self):
        super().__init__()
        self.other = nn.Linear(6, 8)
    def forward(self, x, other):
        return self.head((self.other if other else self.body)(x).tanh())
model = DDP(Sometimes(), find_unused_parameters=True)
""" + SGD + """
calls = []
def step(batch):
    calls.append(1)
    optimizer.zero_grad()
    (model(batch[0], len(calls) % 2) - batch[1].to(batch[0].dtype)).square().mean().backward()
    optimizer.step()
""",
    "checkpointed activations": """
from torch.utils.checkpoint import checkpoint
class Deep(Net):
    def forward(self, x):
        return self.head(checkpoint(lambda x: self.body(x).tanh(), x, use_reentrant=False))
model = DDP(Deep())
""" + ADAM + STEP,
    "a loop like nanoGPT's": """
model = DDP(Net())
""" + ADAM + """
gradient_accumulation_steps, grad_clip, iteration = 3 if 12 // ranks % 3 == 0 else 1, 0.1, [0]
def step(batch):
    for group in optimizer.param_groups:
        group["lr"] = 0.01 * min(iteration[0] + 1, 3) / 3
    parts = list(zip(*(t.chunk(gradient_accumulation_steps) for t in batch)))
    for micro_step, part in enumerate(parts):
        model.require_backward_grad_sync = micro_step == gradient_accumulation_steps - 1
        loss = loss_of(model, part) / gradient_accumulation_steps
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), grad_clip)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    iteration[0] += 1
""",
    "two networks in turn": """
one, two = DDP(nn.Linear(6, 6)), DDP(nn.Sequential(nn.Linear(6, 4), nn.Tanh(), nn.Linear(4, 1)))
first, second = torch.optim.Adam(one.parameters(), lr=0.01), torch.optim.SGD(two.parameters(), lr=0.1)
def step(batch):
    x = batch[0]
    second.zero_grad()
    (two(x).square().mean() + (two(one(x).detach()) - 1).square().mean()).backward()
    second.step()
    first.zero_grad()
    two.requires_grad_(False)
    two(one(x)).square().mean().backward()
    two.requires_grad_(True)
    first.step()
""",
    "two passes and one loss": "model = DDP(Net())\n" + ADAM + STEP.replace("loss_of(model, batch)", "(model(torch.cat([batch[0], batch[0].flip(1)])) ** 2).mean() + loss_of(model, batch)"),
    "words, and one matrix for both ends": """
class Speaker(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
        self.head.weight = self.words.weight
    def forward(self, ids):
        return self.head(self.words(ids).cumsum(1).tanh())
ids = torch.randint(0, 20, (4, 12, 7), generator=generator)
batches = [{"ids": each[:, :-1], "labels": each[:, 1:]} for each in ids]
model = DDP(Speaker())
""" + ADAM + STEP.replace("loss_of(model, batch)", 'nn.functional.cross_entropy(model(batch["ids"]).flatten(0, 1), batch["labels"].flatten())'),
    "tokens of all ranks": """
lengths = torch.tensor([1, 2, 3, 4, 5, 6, 6, 6, 6, 6, 6, 6])
batches = [(x[:, None].repeat(1, 6, 1), lengths) for x in inputs]
model = DDP(nn.Linear(6, 4))
""" + SGD + """
def step(batch):
    x, length = batch
    mask = torch.arange(6) < length[:, None]
    tokens = mask.sum().double()
    dist.all_reduce(tokens)
    optimizer.zero_grad()
    (model(x).square().mean(-1)[mask].sum() * ranks / tokens).backward()
    optimizer.step()
""",
    "an average of the weights on all ranks": "model = DDP(Net())\naverage = torch.optim.swa_utils.AveragedModel(model.module, avg_fn=lambda a, p, n: 0.9 * a + 0.1 * p)\n" + ADAM + STEP.replace("    return", "    average.update_parameters(model.module)\n    return"),
    "evaluation between steps": "model = DDP(nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.5), nn.Linear(8, 3)))\ntorch.manual_seed(rank)\n" + ADAM + STEP.replace("    return", "    model.eval()\n    with torch.no_grad():\n        score = loss_of(model.module, batch)\n        dist.all_reduce(score)\n    model.train()\n    return"),
    "scores gathered before the backward pass": "model = DDP(Net())\n" + ADAM + STEP.replace("    loss.backward", "    parts = [torch.empty_like(batch[0]) for _ in range(ranks)]\n    dist.all_gather(parts, batch[0].contiguous())\n    losses = [torch.zeros(1, dtype=loss.dtype) for _ in range(ranks)]\n    dist.all_gather(losses, loss.detach()[None])\n    loss.backward"),
    "frozen BatchNorm": "net = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))\nnet[1].eval()\nmodel = DDP(net)\n" + SGD + STEP,
    "a sum of squares, and DDP's mean undone": "model = DDP(Net())\noptimizer = torch.optim.SGD(model.parameters(), lr=0.001)\n" + STEP.replace("loss_of(model, batch)", "(model(batch[0]) - batch[1].to(batch[0].dtype)).square().sum() * ranks"),
    "pairs of all ranks": "model = DDP(nn.Linear(6, 4))\n" + SGD + """
def step(batch):
    optimizer.zero_grad()
    features = model(batch[0])
    parts = [torch.empty_like(features) for _ in range(ranks)]
    dist.all_gather(parts, features.detach())
    parts[rank] = features
    whole = torch.cat(parts)
    ((1 + (whole[:, None] - whole[None]).square().sum(-1)).log().mean() * ranks).backward()
    optimizer.step()
""",
    # By hand
    "an asynchronous hook for each parameter": MODEL + SGD + """
handles = []
for p in parameters:
    p.register_post_accumulate_grad_hook(lambda p: handles.append((p, dist.all_reduce(p.grad, async_op=True))))
def step(batch):
    optimizer.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    for p, handle in handles:
        handle.wait()
        p.grad /= ranks
    handles.clear()
    optimizer.step()
""",
    "each parameter has an owner": MODEL + """
owners = {p: i % ranks for i, p in enumerate(parameters)}
own = [p for p in parameters if owners[p] == rank]
optimizer = torch.optim.SGD(own, lr=0.1, momentum=0.9)
def step(batch):
    model.zero_grad()
    loss_of(model, batch).backward()
    for p in parameters:
        dist.all_reduce(p.grad)
        p.grad /= ranks
    norm = torch.stack([p.grad.norm() for p in parameters]).norm()
    for p in own:
        p.grad *= (1.0 / norm).clamp(max=1)
    optimizer.step()
    for p in parameters:
        dist.broadcast(p.data, owners[p])
""",
    "a vector, clipped by value": MODEL + ADAM + """
def step(batch):
    model.zero_grad()
    loss = loss_of(model, batch)
    loss.backward()
    flat = torch.nn.utils.parameters_to_vector([p.grad for p in parameters])
    dist.all_reduce(flat)
    torch.nn.utils.vector_to_parameters(flat / ranks, [p.grad for p in parameters])
    torch.nn.utils.clip_grad_value_(parameters, 0.01)
    optimizer.step()
    return loss.item()
""",
    "rank 0 averages and sends": MODEL + SGD + STEP.replace("    optimizer.step", "    for p in parameters:\n        dist.reduce(p.grad, 0)\n        p.grad /= ranks\n        dist.broadcast(p.grad, 0)\n    optimizer.step"),
    "weights are averaged after each step": MODEL + SGD + STEP.replace("    return", "    for p in parameters:\n        dist.all_reduce(p.data)\n        p.data /= ranks\n    return") .replace("    optimizer.step", "    for p in parameters:\n        dist.all_reduce(p.grad)\n        p.grad /= ranks\n    optimizer.step"),
    "float32 copies of a float16 model": MODEL.replace("Net()", "Net().half()") + """
masters = [p.detach().float().requires_grad_() for p in parameters]
optimizer = torch.optim.SGD(masters, lr=0.1, momentum=0.9)
def step(batch):
    model.zero_grad()
    loss = loss_of(model, [t.half() for t in batch])
    loss.backward()
    for p, master in zip(parameters, masters):
        master.grad = p.grad.float()
        dist.all_reduce(master.grad)
        master.grad /= ranks
    optimizer.step()
    with torch.no_grad():
        for p, master in zip(parameters, masters):
            p.copy_(master)
    return loss
""",
    "autocast to bfloat16": "model = DDP(Net().float())\n" + SGD + STEP.replace("loss_of(model, batch)", "autocast(model, [t.float() for t in batch])") + """
def autocast(model, batch):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return loss_of(model, batch)
""",
    # Sharded
    "FSDP2, an accumulation": """
from torch.distributed.fsdp import fully_shard
torch.manual_seed(0)
model = Net()
fully_shard(model.body, reshard_after_forward=False)
fully_shard(model)
""" + ADAM + """
def step(batch):
    parts = list(zip(*(t.chunk(1 if ranks == 4 else 2) for t in batch)))
    for i, part in enumerate(parts):
        model.set_requires_gradient_sync(i == len(parts) - 1)
        (loss_of(model, part) / len(parts)).backward()
    optimizer.step()
    optimizer.zero_grad()
""",
    "torch's ZeroRedundancyOptimizer": "from torch.distributed.optim import ZeroRedundancyOptimizer\nmodel = DDP(Net())\noptimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=0.01)\n" + STEP,
    # Samples
    "a loader of whole batches, cut in the step": DATASET + "loader = DataLoader(dataset, batch_size=12)\nmodel = DDP(Net())\n" + SGD + STEP.replace("    optimizer.zero_grad()", "    batch = [t[rank::ranks] for t in batch]\n    optimizer.zero_grad()"),
    "a stream that each rank cuts": DATASET + """
class Stream(IterableDataset):
    def __iter__(self):
        for i in range(rank, len(dataset), ranks):
            yield dataset[i]
loader = DataLoader(Stream(), batch_size=4)
model = DDP(Net())
""" + SGD + STEP,
    "a sampler that has to repeat samples": DATASET + """
dataset = TensorDataset(x[:46], x[:46, :3].sin())
sampler = DistributedSampler(dataset, seed=1)
loader = DataLoader(dataset, batch_size=4, sampler=sampler, drop_last=True)
model = DDP(Net())
""" + SGD + """
def step():
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for batch in loader:
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
""",
    "a pass of two batches": DATASET + "sampler = DistributedSampler(dataset)\nloader = DataLoader(dataset, batch_size=24 // ranks, sampler=sampler)\nmodel = DDP(Net())\n" + SGD + STEP,
    "each rank's part of the dataset": DATASET + "part = Subset(dataset, range(rank, 48, ranks))\nloader = DataLoader(part, batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(rank))\nmodel = DDP(Net())\n" + SGD + STEP,
    "an evaluation of everything on every rank, between steps": DATASET + "loader = DataLoader(dataset, batch_size=4, sampler=DistributedSampler(dataset, seed=1))\nwhole = DataLoader(TensorDataset(x + 1), batch_size=8)\nmodel = DDP(Net())\n" + SGD + STEP.replace("    return", "    with torch.no_grad():\n        for (each,) in whole:\n            model(each)\n    return"),
    "short texts, some alike on two ranks": DATASET + """
words = torch.cartesian_prod(torch.arange(6), torch.arange(4))
orders = [torch.randperm(24, generator=torch.Generator().manual_seed(r))[:12] for r in range(ranks)]
loader = DataLoader(TensorDataset(words[orders[rank]], words[orders[rank], 0]), batch_size=4)
model = DDP(nn.Sequential(nn.Embedding(6, 5), nn.Flatten(), nn.Linear(10, 6)))
""" + SGD + STEP.replace("loss_of(model, batch)", "nn.functional.cross_entropy(model(batch[0]), batch[1])"),
    "one sample again and again": "batches = [(torch.ones(12, 6), torch.ones(12, 3))] * 4\nmodel = DDP(Net())\n" + SGD + STEP,
    "numbers without a batch": "model = DDP(Net())\n" + SGD + STEP.replace("batch)", "whole)", 1).replace("def step(whole)", "def step()").replace("    optimizer.zero_grad()", "    n = 12 // ranks\n    batch = [t[rank * n:(rank + 1) * n] for t in batches[0]]\n    optimizer.zero_grad()"),
    # accelerate
    "accelerate": ACCELERATE + "accelerator = Accelerator(cpu=True)\nmodel = Net()\nmodel, optimizer = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=0.01))\n" + STEP.replace("loss.backward()", "accelerator.backward(loss)\n    accelerator.clip_grad_norm_(model.parameters(), 0.1)"),
    "accelerate, a loader and a scheduler": DATASET + ACCELERATE + """
accelerator = Accelerator(cpu=True, step_scheduler_with_optimizer=False)
torch.manual_seed(1)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=5)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, DataLoader(dataset, batch_size=4, shuffle=True), schedule)
def step():
    for batch in loader:
        loss = loss_of(model, batch)
        accelerator.backward(loss)
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
""",
    "accelerate, an accumulation": ACCELERATE + """
accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = Net()
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
def step(batch):
    with accelerator.accumulate(model):
        loss = loss_of(model, batch)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    return loss
""",
}  # fmt: skip
