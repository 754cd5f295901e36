"""Gather and scatter have a root, so no factor."""
# caught by: test_bandwidths
# mistake: one_of_a_kind
# %% bandwidths: changed
# -     elif collective in ("broadcast", "reduce"):
# +     elif collective in ("broadcast", "reduce", "gather", "scatter"):
