"""What recording costs: the same all-reduce over the same connections, recorded and not, in turns."""

from functools import partial

from ringzero_course.bench import runner

SIZE, WORLD_SIZES, ITERATIONS = 16 * 2**20, (2, 4), 151


def rows():
    """What recording every operation adds to a 16 MiB all-reduce.

    For each number of ranks and implementation a row: ours recorded, the peer not; a ratio of 1 costs nothing.
    """
    from ringzero import launch

    for n in runner.progress(WORLD_SIZES):
        seconds = launch(measure, SIZE, ITERATIONS, world_size=n, device="cpu", timeout=300, trace=True).returns[0]
        for name in sorted({name for name, _ in seconds}):
            case = f"{name} of {SIZE / 2**20:g} MiB, {n} ranks"
            yield runner.milliseconds(case, seconds[name, True], seconds[name, False], "not recorded", "time")


def measure(size, iterations):
    """On each rank: ``{(implementation, whether it was recorded): seconds of each}``, of the slowest rank."""
    import torch
    import torch.distributed as dist

    import ringzero
    from ringzero.measure import turns

    recording, tensor = dist.new_group(), torch.zeros(size // 4)
    implementations = {
        "ring all-reduce": lambda group: ringzero.all_reduce(tensor, group=group),
        "gloo all-reduce": lambda group: group.allreduce([tensor]).wait(),
    }
    groups = {True: recording, False: recording._inner}  # connections of one: two groups differ by what recording costs
    calls = {(name, which): partial(act, groups[which]) for name, act in implementations.items() for which in groups}
    return turns.seconds_in_turns(calls, iterations)


command = runner.command(rows)
