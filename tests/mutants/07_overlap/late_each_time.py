"""Returns what a collective costs, not all of them."""
# caught by: test_straggler
# mistake: one_of_a_kind
# says: asked for is the sum
# %% straggler: changed
# -     return rank, charges[rank]
# +     return rank, charges[rank] / len(enters)
