"""The average of the collectives in which it is last, not of all."""
# caught by: test_straggler
# mistake: threshold_ignored
# says: not None: there is no straggler
# %% straggler: changed
# -     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters):
# +     often = sum(times[rank] == max(times) for times in enters)
# +     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * often:
