"""ZeRO++ and HSDP beside ZeRO-3, in turns on the same ranks of an emulated cluster: step time, and bytes across nodes.

Two nodes of two ranks each, and a slow link between the nodes. A step is forward, backward and AdamW, in bf16. Bytes
are counted from the records of one step, all ranks together, and stand beside the formula's.
"""

import statistics

from ringzero_course.bench import results, steps
from ringzero_course.bench.steps import RATES

NODES, RANKS_PER_NODE = 2, 2
WIDTH, LAYERS = 512, 6  # 1.6 million parameters
STEPS = 9
PLAIN = "ZeRO-3"
POLICIES = {  # as ``costs.two_level`` has them
    PLAIN: {},
    "qwZ": {"weights": "int8"},
    "hpZ": {"secondary": True},
    "qgZ": {"gradients": "int4"},
    "ZeRO++": {"weights": "int8", "gradients": "int4", "secondary": True},
    "bf16 to int8": {"weights": "int8", "gradients": "int8"},
    "HSDP": {"sharding": "hybrid"},
}


def rows(rates=RATES, count=STEPS, progress=lambda cases: cases):
    """For each rate and policy a row of step time; for each policy one of bytes across nodes."""
    import ringzero
    from ringzero.costs import two_level

    counted = None
    for rate in progress(rates):
        with ringzero.Cluster(nodes=NODES, ranks_per_node=RANKS_PER_NODE, inter_node=rate) as cluster:
            if counted is None:
                counted = cluster.launch(bytes_across, timeout=600).returns
            seconds = cluster.launch(step_seconds, count, timeout=600).returns[0]
        for name in POLICIES:
            if name != PLAIN:
                paired = statistics.median(b / a for a, b in zip(seconds[name], seconds[PLAIN], strict=True))
                medians = (statistics.median(seconds[which]) * 1e3 for which in (name, PLAIN))
                yield results.row(f"{name}, {rate}", "step time", *medians, PLAIN, "ms", paired)
    for name, given in POLICIES.items():
        sent = sum(each[name] for each in counted)
        formula = LAYERS * two_level.cross_node_bytes(WIDTH * WIDTH, NODES, RANKS_PER_NODE, **given)
        yield results.row(name, "bytes across nodes", sent / 2**20, formula / 2**20, "formula", "MiB")


def _travel(name):
    from ringzero.zero import Hybrid, ZeroPlusPlus

    given = POLICIES[name]
    if not given:
        return None
    if "sharding" in given:
        return Hybrid(RANKS_PER_NODE)
    parts = {"weights": None, "gradients": None, "secondary": False} | given
    return ZeroPlusPlus(**parts, ranks_per_node=RANKS_PER_NODE)


def trainer(name, group):
    """A function that trains one step with a policy."""
    import torch

    from ringzero.zero import ZeroStage3

    torch.manual_seed(0)
    module = torch.nn.Sequential(*(torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)))
    model = ZeroStage3(
        module, torch.optim.AdamW, lr=1e-4, units=list(module), mixed_precision=torch.bfloat16, travel=_travel(name),
        group=group,
    )  # fmt: skip
    batch = torch.randn(16, WIDTH)

    def step():
        model(batch).float().square().mean().backward()
        model.step()
        model.zero_grad()

    return step


def step_seconds(count):
    """On each rank: ``{policy: seconds of each step}``, of the slowest rank."""
    import torch.distributed as dist

    group = dist.new_group(backend="gloo")
    return steps.seconds_in_turns({name: trainer(name, group) for name in POLICIES}, count, group, peers=())


def bytes_across():
    """On each rank: ``{policy: bytes of one step that it sends to the other node}``."""
    from ringzero.record import recorded

    sent = {}
    for name in POLICIES:
        step = trainer(name, None)
        step()
        before = len(recorded())
        step()
        across = sum(
            each.bytes
            for each in recorded()[before:]
            if each.kind == "send" and each.peer_rank // RANKS_PER_NODE != each.rank // RANKS_PER_NODE
        )
        sent[name] = across
    return sent


HELP = "ZeRO++, its parts and HSDP beside ZeRO-3 between two emulated nodes: time of a step, bytes across."
command = steps.command_between_nodes("zeropp", HELP, rows, STEPS)
