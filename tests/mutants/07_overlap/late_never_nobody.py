"""Always names somebody."""
# caught by: test_straggler
# mistake: threshold_ignored
# says: not None: there is no straggler
# %% straggler: changed
# -     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters):
# -         return None
#       return rank, charges[rank]
