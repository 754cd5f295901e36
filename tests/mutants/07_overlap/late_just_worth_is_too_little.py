"""Wants more than what is worth mending, not at least."""
# caught by: test_straggler
# mistake: threshold_ignored
# says: named nobody, and the others wait for rank 3
# %% straggler: changed
# -     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters):
# +     if charges[rank] < 0.6 * sum(charges) or charges[rank] <= worth * len(enters):
