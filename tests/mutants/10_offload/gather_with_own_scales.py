"""Every rank uses its own scales for all shards."""


# caught by: test_quantised_gather
# mistake: not_exchanged
# says: on rank 0 the vector is too far off
# %% quantised_gather: changed
# -     return torch.cat([dequantise(integers[r, :size], scales[r], block) for r, size in enumerate(sizes)])
# +     return torch.cat([dequantise(integers[r, :size], scales[rank], block) for r, size in enumerate(sizes)])
