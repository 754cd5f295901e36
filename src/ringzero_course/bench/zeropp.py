"""ZeRO++ and HSDP beside ZeRO-3, in turns on the same ranks of an emulated cluster: step time, and bytes across nodes.

Two nodes of two ranks each, and a slow link between the nodes. A step is forward, backward and AdamW, in bf16. Bytes
are counted from the records of one step, all ranks together, and stand beside the formula's.
"""

from ringzero_course.bench import networks, runner, trainers

NODES, RANKS_PER_NODE = 2, 2
WIDTH, LAYERS = 512, 6  # 1.6 million parameters
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


def rows(rates=networks.RATES, steps=9):
    """ZeRO++, its parts and HSDP beside ZeRO-3 between two emulated nodes: time of a step, bytes across."""
    from ringzero.costs import two_level

    counted = None
    for rate, cluster in networks.between_nodes(rates, NODES, RANKS_PER_NODE):
        counted = counted or cluster.launch(bytes_across, timeout=600).returns
        seconds = cluster.launch(step_seconds, steps, timeout=600).returns[0]
        for name in POLICIES:
            if name != PLAIN:
                yield runner.milliseconds(f"{name}, {rate}", seconds[name], seconds[PLAIN], PLAIN)
    for name, given in POLICIES.items():
        sent = sum(of_rank[name] for of_rank in counted) / 2**20
        formula = LAYERS * two_level.cross_node_bytes(WIDTH * WIDTH, NODES, RANKS_PER_NODE, **given) / 2**20
        yield runner.row(name, "bytes across nodes", sent, formula, "formula", "MiB")


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

    module = trainers.stack(WIDTH, LAYERS)
    model = ZeroStage3(
        module, torch.optim.AdamW, lr=1e-4, units=list(module), mixed_precision=torch.bfloat16, travel=_travel(name),
        group=group,
    )  # fmt: skip
    return trainers.step_of(model, torch.randn(16, WIDTH))


def step_seconds(steps):
    """On each rank: ``{policy: seconds of each step}``, of the slowest rank."""
    import torch.distributed as dist

    group = dist.new_group(backend="gloo")
    return trainers.seconds_in_turns({name: trainer(name, group) for name in POLICIES}, steps, group)


def bytes_across():
    """On each rank: ``{policy: bytes of one step that it sends to the other node}``."""

    def across(each):
        return each.kind == "send" and each.peer_rank // RANKS_PER_NODE != each.rank // RANKS_PER_NODE

    return {
        name: sum(each.bytes for each in trainers.records_of(trainer(name, None)) if across(each)) for name in POLICIES
    }


command = runner.command(rows, **networks.BETWEEN_NODES)
