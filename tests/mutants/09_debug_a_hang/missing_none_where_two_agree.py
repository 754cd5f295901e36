"""Compares neighbours in the list, and not the last with the first."""
# caught by: test_first_missing
# mistake: one_for_all
# %% first_missing
def first_missing(trace, world_size):
    calls = [sum(op.kind == "all_reduce" for op in trace if op.rank == rank) for rank in range(world_size)]
    fewest = calls[0] if calls[0] < calls[1 % world_size] else min(calls[1:] or calls)
    if calls.count(fewest) == world_size:
        return None
    return fewest + 1, [rank for rank in range(world_size) if calls[rank] == fewest]
