"""Indices into the sorted vector, not into the vector."""


# caught by: test_top_k_mean
# mistake: wrong_place
# says: mine is wrong
# %% top_k_mean: changed
#       values = vector[indices]
# +     indices = torch.arange(len(indices), dtype=torch.int32)
