"""Cuts a bucket into equal pieces."""
# caught by: test_backward_pass
# mistake: divisible_only
# says: has shape
# %% backward_pass: changed
# -         gradients += flat.split(sizes)
# +         gradients += flat.chunk(len(sizes))
