"""Sorts the caller's caps."""
# caught by: test_best_cap
# mistake: changes_its_input
# %% best_cap: changed
#       """The bucket size of ``caps`` (bytes) with which the last all-reduce ends first."""
# +     caps.sort()
#       return min(caps, key=lambda cap: all_reduces(backwards, sizes, cap, alpha, beta)[-1][1])
