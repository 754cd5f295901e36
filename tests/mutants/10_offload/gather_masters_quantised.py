"""The shard is overwritten by what the others see of it."""


# caught by: test_quantised_gather
# mistake: changes_its_input
# says: rank 0 changed its shard
# %% quantised_gather: changed
# -     return torch.cat([dequantise(integers[r, :size], scales[r], block) for r, size in enumerate(sizes)])
# +     shard.copy_(dequantise(mine, its_scales, block))
# +     return torch.cat([dequantise(integers[r, :size], scales[r], block) for r, size in enumerate(sizes)])
