"""Looks at one collective."""
# caught by: test_straggler
# mistake: one_for_all
# says: what rank 3 costs is 4, expected 8
# %% straggler: changed
# -     for times in enters:
# +     for times in enters[-1:]:
# @@
# -     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters):
# +     if charges[rank] < worth:
