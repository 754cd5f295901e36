"""A rank whose vector is all zeros sends nothing, and the others wait for it."""


# caught by: test_top_k_mean
# mistake: special_case
# says: rank 1 never entered all_gather
# %% top_k_mean: changed
#       n = dist.get_world_size()
# +     if not vector.any():
# +         return torch.zeros_like(vector), torch.zeros_like(vector)
