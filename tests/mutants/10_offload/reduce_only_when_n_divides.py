"""Chunks of the length of the first one."""


# caught by: test_quantised_reduce_scatter
# mistake: divisible_only
# says: on rank 1 the chunk is too far off
# %% quantised_reduce_scatter: changed
# -         part, its_scales = quantise(vector[bounds[r] : bounds[r + 1]], block)
# +         part, its_scales = quantise(vector[r * longest : (r + 1) * longest], block)
