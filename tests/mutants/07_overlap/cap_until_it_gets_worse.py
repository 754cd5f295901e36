"""Tries larger and larger caps until one ends later than the one before."""
# caught by: test_best_cap
# mistake: search_too_short
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    """The bucket size of ``caps`` (bytes) with which the last all-reduce ends first."""
    best, least = None, math.inf
    for cap in sorted(caps):
        end = all_reduces(backwards, sizes, cap, alpha, beta)[-1][1]
        if end > least:
            break
        best, least = cap, end
    return best
