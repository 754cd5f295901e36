"""More than four ranks are left out."""
# caught by: test_quantised_gather
# mistake: some_ranks_only
# %% quantised_gather: changed
# -     return torch.cat([dequantise(integers[r, :size], scales[r], block) for r, size in enumerate(sizes)])
# +     parts = [dequantise(integers[r, :size], scales[r], block) for r, size in enumerate(sizes)]
# +     return torch.cat([part if r < 4 else torch.zeros_like(part) for r, part in enumerate(parts)])
