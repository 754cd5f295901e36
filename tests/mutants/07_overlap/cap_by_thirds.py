"""Narrows the caps down by thirds, as if there were one valley."""
# caught by: test_best_cap
# mistake: rule_of_thumb
# says: the step ends after
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    caps = sorted(caps)
    def end(i):
        return all_reduces(backwards, sizes, caps[i], alpha, beta)[-1][1]
    lo, hi = 0, len(caps) - 1
    while hi - lo > 2:
        a, b = lo + (hi - lo) // 3, hi - (hi - lo) // 3
        if end(a) <= end(b):
            hi = b
        else:
            lo = a
    return caps[min(range(lo, hi + 1), key=end)]
