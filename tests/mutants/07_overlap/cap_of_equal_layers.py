"""Takes all layers to be alike."""
# caught by: test_best_cap
# mistake: one_for_all
# says: the step ends after
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    n = len(sizes)
    alike = [sum(backwards) / n] * n, [sum(sizes) / n] * n
    return min(caps, key=lambda cap: all_reduces(*alike, cap, alpha, beta)[-1][1])
