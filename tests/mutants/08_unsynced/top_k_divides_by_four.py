"""The mean of 4 ranks, however many there are."""


# caught by: test_top_k_mean
# mistake: some_ranks_only
# says: on rank 0 in mean the vector is 0.75 times what it should be
# %% top_k_mean: changed
# -         mean[theirs] += what / n
# +         mean[theirs] += what / 4
