"""The k largest of the mean of all: each rank keeps and sends the same places."""


# caught by: test_top_k_mean
# mistake: too_much_sent
# says: mine is wrong
# %% top_k_mean: changed
# -     indices = vector.abs().topk(min(k, vector.numel())).indices.int()
# +     whole = [torch.empty_like(vector) for _ in range(n)]
# +     dist.all_gather(whole, vector)
# +     indices = sum(whole).abs().topk(min(k, vector.numel())).indices.int()
