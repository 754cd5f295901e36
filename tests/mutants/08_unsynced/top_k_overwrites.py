"""Where two ranks send a number, the later one wins."""


# caught by: test_top_k_mean
# mistake: overwritten
# says: where several ranks sent a number, only one of them counts
# %% top_k_mean: changed
# -         mean[theirs] += what / n
# +         mean[theirs] = what / n
