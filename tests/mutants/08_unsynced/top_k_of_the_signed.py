"""The k largest numbers, where the largest magnitudes are asked for."""


# caught by: test_top_k_mean
# mistake: magnitude
# says: they are the largest ones with their signs; asked for are the largest magnitudes
# %% top_k_mean: changed
# -     indices = vector.abs().topk(min(k, vector.numel())).indices.int()
# +     indices = vector.topk(min(k, vector.numel())).indices.int()
