"""The sum over the ranks."""


# caught by: test_top_k_mean
# mistake: sum_or_mean
# says: on rank 0 in mean the vector is 4 times what it should be
# %% top_k_mean: changed
# -         mean[theirs] += what / n
# +         mean[theirs] += what
