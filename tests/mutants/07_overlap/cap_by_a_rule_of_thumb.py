"""The cap nearest to the best one of many small equal layers."""
# caught by: test_best_cap
# mistake: rule_of_thumb
# says: the step ends after
# %% best_cap
def best_cap(backwards, sizes, caps, alpha, beta):
    best = math.sqrt(alpha / beta * sum(sizes))
    return min(caps, key=lambda cap: abs(math.log(cap / max(best, 1))))
