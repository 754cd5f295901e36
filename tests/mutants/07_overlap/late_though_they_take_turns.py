"""Does not ask whether ranks take turns."""
# caught by: test_straggler
# mistake: threshold_ignored
# says: not None: there is no straggler
# %% straggler: changed
# -     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters):
# +     if charges[rank] < worth * len(enters):
