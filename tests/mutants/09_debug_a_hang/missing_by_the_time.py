"""Compares the times of the last all-reduce of each rank."""
# caught by: test_first_missing
# mistake: rule_of_thumb
# %% first_missing
def first_missing(trace, world_size):
    calls, last = [0] * world_size, [-1.0] * world_size
    for op in trace:
        if op.kind == "all_reduce":
            calls[op.rank] += 1
            last[op.rank] = op.start
    if len(set(last)) == 1:
        return None
    first = min(last)
    return min(calls) + 1, [rank for rank in range(world_size) if last[rank] == first]
