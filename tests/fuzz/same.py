"""Does ``ringzero same`` accuse a right program? Random ones: models, trainers, optimizers, types, numbers of ranks.

    python -m tests.fuzz.same --programs 200

``tests/same`` runs some. Each is right by construction, and so it must be the same on its ranks as in one process.
"""

import argparse
import random
import tempfile
from pathlib import Path

from ringzero.same import ProgramError, compare
from tests.same.kinds import KINDS
from tests.same.programs import write

MODELS = {
    "two layers": "nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))",
    "layer norm": "nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3))",
    "dropout": "nn.Sequential(nn.Linear(6, 8), nn.Dropout(0.2), nn.SiLU(), nn.Linear(8, 3))",
    "residual": "Residual()",
    "frozen": "half_frozen(nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)))",
}
OPTIMIZERS = {
    "SGD": "torch.optim.SGD, lr=0.1", "momentum": "torch.optim.SGD, lr=0.05, momentum=0.9",
    "AdamW": "torch.optim.AdamW, lr=0.01", "Adam": "torch.optim.Adam, lr=0.003, weight_decay=0.01",
}  # fmt: skip
TRAINERS = (
    "by hand", "flat", "DDP", "FSDP2", "accelerate", "ZeroRedundancyOptimizer", "our DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3",
)  # fmt: skip
TYPES = {
    "as it comes": "", "float32": ".float()", "float64": ".double()", "bfloat16": ".bfloat16()", "float16": ".half()",
}  # fmt: skip
HELPERS = """
class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inside, self.out = nn.ModuleList(nn.Linear(6, 6) for _ in range(2)), nn.Linear(6, 3)
    def forward(self, x):
        for layer in self.inside:
            x = x + layer(x).relu()
        return self.out(x)

def half_frozen(model):
    model[0].requires_grad_(False)
    return model

torch.manual_seed(1)
module = MODEL
torch.manual_seed(50 + rank)
cast = next(module.parameters()).dtype
"""


def program(rng: random.Random, ranks: int) -> tuple[str, str]:
    """What it is in words, and its text; micro-batches of a rank are all of one size."""
    model, kind, trainer, numbers = (rng.choice([*each]) for each in (MODELS, OPTIMIZERS, TRAINERS, TYPES))
    if numbers == "float16":  # in which squares of gradients, and Adam's epsilon, are zero
        kind = "momentum"
    clips, window, scheduled = rng.random() < 0.3, rng.choice((1, 1, 3 if ranks == 4 else 2)), rng.random() < 0.3
    ours = trainer.startswith("ZeRO")
    optimizer, options = OPTIMIZERS[kind].split(", ", 1)
    lines = [HELPERS.replace("MODEL", MODELS[model] + TYPES[numbers])]
    trained = "[p for p in model.parameters() if p.requires_grad]"
    if ours:
        lines += ["from ringzero.zero import STAGES", f"model = STAGES[{trainer[-1]}](module, {optimizer}, {options})"]
        clips = scheduled = False
    else:
        wraps = {"DDP": "DDP(module)", "our DDP": "Ours(module)", "ZeroRedundancyOptimizer": "DDP(module)"}
        wrap = wraps.get(trainer, "module")
        lines += ["from ringzero.data_parallel import DistributedDataParallel as Ours"] * (trainer == "our DDP")
        if trainer == "FSDP2":
            lines += ["from torch.distributed.fsdp import fully_shard", "fully_shard(module)"]
        sharded = trainer == "ZeroRedundancyOptimizer"
        lines += ["from torch.distributed.optim import ZeroRedundancyOptimizer"] * sharded
        made = (
            f"ZeroRedundancyOptimizer(trained, {optimizer}, {options})"
            if sharded
            else f"{optimizer}(trained, {options})"
        )
        lines += [f"model = {wrap}", f"trained = {trained}", f"optimizer = {made}"]
        if trainer == "accelerate":
            lines += ["from accelerate import Accelerator", "accelerator = Accelerator(cpu=True)",
                      "model, optimizer = accelerator.prepare(model, optimizer)"]  # fmt: skip
        lines += ["schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda k: 1 / (1 + k))"] * scheduled
    step = "model" if ours else "optimizer"
    lines += ["def step(batch):", "    parts = list(zip(*(t.to(cast).chunk(WINDOW) for t in batch)))",
              "    for x, y in parts:", "        loss = (model(x) - y).square().mean() / len(parts)",
              "        loss.backward()"]  # fmt: skip
    if trainer == "by hand":
        lines += ["    for p in trained:", "        dist.all_reduce(p.grad)", "        p.grad /= ranks"]
    if trainer == "flat":
        lines += ["    whole = torch.cat([p.grad.flatten() for p in trained])", "    dist.all_reduce(whole)",
                  "    for p, g in zip(trained, (whole / ranks).split([p.numel() for p in trained])):",
                  "        p.grad.copy_(g.view_as(p))"]  # fmt: skip
    lines += ["    nn.utils.clip_grad_norm_(trained, 0.05)"] * clips
    lines += [f"    {step}.step()", "    schedule.step()" * scheduled, f"    {step}.zero_grad()", "    return loss"]
    what = ", ".join([model, kind, trainer, numbers, *["clipped"] * clips, *[f"{window} micro-batches"] * (window > 1)])
    return what, "\n".join(lines).replace("WINDOW", str(window)) + "\n"


def judge(seed: int, folder: Path) -> tuple[str, str]:
    """``(verdict, words)``: "right", "accused" or "refused"."""
    rng = random.Random(seed)
    ranks = rng.choice((2, 3, 4))
    if seed % 3 == 0:
        what = rng.choice([*KINDS])
        text = KINDS[what]
    else:
        what, text = program(rng, ranks)
    try:
        verdict = compare(str(write(folder / f"program_{seed}.py", text)), "step", ranks=ranks, steps=3)
    except ProgramError as error:
        return "refused", f"{what}, {ranks} ranks: {error}"
    return ("right", f"{what}, {ranks} ranks") if verdict.same else ("accused", f"{what}, {ranks} ranks: {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    counts = {"right": 0, "accused": 0, "refused": 0}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(given.seed, given.seed + given.programs):
            verdict, words = judge(seed, Path(folder))
            counts[verdict] += 1
            if verdict != "right":
                print(f"{seed} {verdict}: {words}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


if __name__ == "__main__":
    main()
