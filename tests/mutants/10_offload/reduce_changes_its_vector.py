"""The vector is quantised in place."""


# caught by: test_quantised_reduce_scatter
# mistake: changes_its_input
# says: rank 0 changed its vector
# %% quantised_reduce_scatter: changed
# -         part, its_scales = quantise(vector[bounds[r] : bounds[r + 1]], block)
# +         part, its_scales = quantise(vector[bounds[r] : bounds[r + 1]], block)
# +         vector[bounds[r] : bounds[r + 1]] = dequantise(part, its_scales, block)
