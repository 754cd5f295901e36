"""Reports the call of the rank that got furthest, instead of the first that is missing."""
# caught by: test_first_missing
# mistake: one_of_a_kind
# %% first_missing
def first_missing(trace, world_size):
    calls = [sum(op.kind == "all_reduce" for op in trace if op.rank == rank) for rank in range(world_size)]
    most = max(calls)
    late = [rank for rank in range(world_size) if calls[rank] < most]
    return (most, late) if late else None
