"""No factor for an all-to-all."""
# caught by: test_bandwidths
# mistake: one_of_a_kind
# %% bandwidths: changed
# -     elif collective in ("broadcast", "reduce"):
# +     elif collective in ("broadcast", "reduce", "all_to_all"):
