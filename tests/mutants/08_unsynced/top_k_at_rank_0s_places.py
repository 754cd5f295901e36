"""All ranks send their numbers at the places that rank 0 chose."""


# caught by: test_top_k_mean
# mistake: wrong_place
# says: they are at the places that rank 0 keeps
# %% top_k_mean: changed
# -     values = vector[indices]
# -     all_indices = [torch.empty_like(indices) for _ in range(n)]
# -     all_values = [torch.empty_like(values) for _ in range(n)]
# -     dist.all_gather(all_indices, indices)
# +     all_indices = [torch.empty_like(indices) for _ in range(n)]
# +     dist.all_gather(all_indices, indices)
# +     all_indices = [all_indices[0] for _ in range(n)]
# +     indices = all_indices[0]
# +     values = vector[indices]
# +     all_values = [torch.empty_like(values) for _ in range(n)]
