"""Names the rank that is last most often, by however little."""
# caught by: test_straggler
# mistake: rule_of_thumb
# says: named nobody, and the others wait for rank 1
# %% straggler: changed
# -     rank = charges.index(max(charges))
# +     latest = [times.index(max(times)) for times in enters]
# +     rank = max(range(len(charges)), key=latest.count)
# @@
# -     if charges[rank] < 0.6 * sum(charges) or charges[rank] < worth * len(enters):
# +     if latest.count(rank) < 0.6 * len(latest) or max(charges) < worth * len(enters):
