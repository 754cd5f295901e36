"""Blocks are those of the whole vector, not of the shard."""


# caught by: test_quantised_gather
# mistake: wrong_place
# %% quantised_gather: changed
# -     mine, its_scales = quantise(shard, block)
# +     head = bounds[rank] % block
# +     mine, its_scales = quantise(torch.cat([shard.new_zeros(head), shard]), block)
# +     mine, its_scales = mine[head:], its_scales[: -(-max(sizes) // block)]
