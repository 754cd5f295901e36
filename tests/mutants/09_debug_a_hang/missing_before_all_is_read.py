"""Stops at the first rank that is ahead: the operations of all ranks need not be in turns."""
# caught by: test_first_missing
# mistake: search_too_short
# says: expected (3, [1])
# %% first_missing
def first_missing(trace, world_size):
    calls = [0] * world_size
    for op in trace:
        if op.kind == "all_reduce":
            if calls[op.rank] > min(calls):
                number = min(calls) + 1
                return number, [rank for rank in range(world_size) if calls[rank] < number]
            calls[op.rank] += 1
    if max(calls) == min(calls):
        return None
    return min(calls) + 1, [rank for rank in range(world_size) if calls[rank] == min(calls)]
