"""Cuts a bucket into equal pieces."""
# caught by: test_backward_pass
# says: has shape
# %% backward_pass: changed
# -         gradients += flat.split(sizes)
# +         gradients += flat.chunk(len(sizes))
