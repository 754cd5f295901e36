"""All that is as large as the k-th: too many where several are alike."""


# caught by: test_top_k_mean
# mistake: special_case
# says: rank 1 called all_gather
# %% top_k_mean: changed
# -     indices = vector.abs().topk(min(k, vector.numel())).indices.int()
# +     least = vector.abs().topk(min(k, vector.numel())).values[-1]
# +     indices = (vector.abs() >= least).nonzero().flatten().int()
