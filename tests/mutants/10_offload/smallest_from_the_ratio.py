"""One more than the ratio of all copies to all computations."""


# caught by: test_smallest_window
# mistake: rule_of_thumb
# says: the window is 3, expected 2 (1.5 times it)
# %% smallest_window: changed
# -     k = next(k for k in range(1, layers + 1) if seconds(k) <= best * (1 + 1e-9))
# +     k = min(layers, 1 + math.ceil(sum(copies) / max(sum(computes), 1e-9)))
# @@
# -     layers = len(copies)
# +     import math
# +
# +     layers = len(copies)
