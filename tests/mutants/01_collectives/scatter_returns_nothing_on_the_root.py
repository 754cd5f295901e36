"""Returns only where something was received."""


# caught by: test_scatter
# mistake: not_every_rank
# says: does it return nothing?
# %% scatter: changed
# -     return chunks[rank]
