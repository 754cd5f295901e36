"""Gathers Python objects: pickles, with their lengths."""


# caught by: test_top_k_mean
# mistake: too_much_sent
# says: gave all_gather
# %% top_k_mean: changed
# -     all_indices = [torch.empty_like(indices) for _ in range(n)]
# -     all_values = [torch.empty_like(values) for _ in range(n)]
# -     dist.all_gather(all_indices, indices)
# -     dist.all_gather(all_values, values)
# +     everything = [None] * n
# +     dist.all_gather_object(everything, (indices, values))
# +     all_indices, all_values = zip(*everything, strict=True)
