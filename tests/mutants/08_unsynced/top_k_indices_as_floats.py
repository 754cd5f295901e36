"""The indices travel as fp32, which has as many bytes and is right for small ones."""


# caught by: test_top_k_mean
# mistake: type_fixed
# says: bytes that are not its 20 indices and numbers
# %% top_k_mean: changed
# -     all_indices = [torch.empty_like(indices) for _ in range(n)]
# +     all_indices = [torch.empty_like(indices, dtype=torch.float32) for _ in range(n)]
# @@
# -     dist.all_gather(all_indices, indices)
# +     dist.all_gather(all_indices, indices.float())
# @@
# -         mean[theirs] += what / n
# +         mean[theirs.int()] += what / n
