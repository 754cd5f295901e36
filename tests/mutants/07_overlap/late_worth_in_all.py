"""Compares what all collectives cost with what one is worth."""
# caught by: test_straggler
# mistake: threshold_ignored
# says: not None: there is no straggler
# %% straggler: changed
# -     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters):
# +     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth:
