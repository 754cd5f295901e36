"""60 % of the collectives in place of the charges."""
# caught by: test_straggler
# mistake: rule_of_thumb
# %% straggler: changed
#       charges = [0.0] * len(enters[0])
# +     counts = [0] * len(enters[0])
#       for times in enters:
# @@
#           others = times[:last] + times[last + 1 :]
# +         counts[last] += 1
#           charges[last] += times[last] - statistics.median(others)
#       rank = charges.index(max(charges))
# -     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters):
# +     if counts[rank] < 0.6 * len(enters) or charges[rank] < worth * len(enters):
#           return None
