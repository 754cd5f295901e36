"""Indices of 8 bytes."""


# caught by: test_top_k_mean
# mistake: too_much_sent
# says: rank 0 gave all_gather 240 bytes; 20 numbers and their indices, 4 bytes each, are 160; the vector is 800
# %% top_k_mean: changed
# -     indices = vector.abs().topk(min(k, vector.numel())).indices.int()
# +     indices = vector.abs().topk(min(k, vector.numel())).indices
