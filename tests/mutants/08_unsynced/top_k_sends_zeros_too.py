"""The whole vector travels, most of it zeros."""


# caught by: test_top_k_mean
# mistake: too_much_sent
# says: rank 0 gave all_gather 800 bytes; 20 numbers and their indices, 4 bytes each, are 160; the vector is 800
# %% top_k_mean: changed
# -     all_indices = [torch.empty_like(indices) for _ in range(n)]
# -     all_values = [torch.empty_like(values) for _ in range(n)]
# -     dist.all_gather(all_indices, indices)
# -     dist.all_gather(all_values, values)
# -     mean, mine = torch.zeros_like(vector), torch.zeros_like(vector)
# -     for theirs, what in zip(all_indices, all_values, strict=True):
# -         mean[theirs] += what / n
# -     mine[indices] = values
# -     return mean, mine
# +     mine = torch.zeros_like(vector)
# +     mine[indices] = values
# +     everyones = [torch.empty_like(vector) for _ in range(n)]
# +     dist.all_gather(everyones, mine)
# +     return sum(everyones) / n, mine
