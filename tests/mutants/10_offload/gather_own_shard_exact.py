"""Each rank has its own shard exact: ranks compute with different parameters."""


# caught by: test_quantised_gather
# mistake: not_exchanged
# says: on rank 1 the vector is not what it is on rank 0: they differ by up to 0.0128
# %% quantised_gather: changed
# -     return torch.cat([dequantise(integers[r, :size], scales[r], block) for r, size in enumerate(sizes)])
# +     whole = torch.cat([dequantise(integers[r, :size], scales[r], block) for r, size in enumerate(sizes)])
# +     whole[bounds[rank] : bounds[rank + 1]] = shard
# +     return whole
