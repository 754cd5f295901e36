"""The cap with which the first all-reduces hide most."""
# caught by: test_best_cap
# mistake: wrong_maximum
# %% best_cap: changed
# -     return min(caps, key=lambda cap: all_reduces(backwards, sizes, cap, alpha, beta)[-1][1])
# +     return min(caps, key=lambda cap: sum(end - begin for begin, end in all_reduces(backwards, sizes, cap, alpha, beta) if end > sum(backwards)))
