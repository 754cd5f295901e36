"""The k largest numbers, where the largest magnitudes are asked for."""


# caught by: test_top_k_mean
# says: on rank 0 mine is wrong in 18 of 200 elements
# %% top_k_mean: changed
# -     indices = vector.abs().topk(min(k, vector.numel())).indices.int()
# +     indices = vector.topk(min(k, vector.numel())).indices.int()
