"""Looks only at ranks that are in the trace: one that called nothing is never missing."""
# caught by: test_first_missing
# mistake: one_for_all
# %% first_missing
def first_missing(trace, world_size):
    ranks = sorted({op.rank for op in trace})
    calls = {rank: sum(op.kind == "all_reduce" for op in trace if op.rank == rank) for rank in ranks}
    fewest = min(calls.values())
    late = [rank for rank in ranks if calls[rank] == fewest]
    return None if len(late) == len(ranks) else (fewest + 1, late)
