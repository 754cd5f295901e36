"""Returns what a collective costs, not all of them."""
# caught by: test_straggler
# says: what rank 3 costs is
# %% straggler: changed
# -     return rank, charges[rank]
# +     return rank, charges[rank] / len(enters)
