"""An error where k is larger than the vector."""


# caught by: test_top_k_mean
# mistake: special_case
# says: raised RuntimeError: selected index k out of range
# %% top_k_mean: changed
# -     indices = vector.abs().topk(min(k, vector.numel())).indices.int()
# +     indices = vector.abs().topk(k).indices.int()
