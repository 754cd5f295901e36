"""Divides by N, and by 4 where there are more ranks."""


# caught by: test_top_k_mean
# mistake: some_ranks_only
# says: is 1.25 times what it should be
# %% top_k_mean: changed
# -         mean[theirs] += what / n
# +         mean[theirs] += what / min(n, 4)
