"""What is missing counts as zero, even if gradients of it were added up inside no_sync."""
# caught by: test_DDP
# mistake: without_gradient
# says: the gradient of layers.2.weight is all zeros
# %% DDP: changed
# -     """As ``Accumulating``; parameters may go without a gradient on some ranks, or on all."""
# -
# -     launched = 0  # buckets on their way
# +     launched = 0
# @@
#               for parameter in list(bucket.missing):
# +                 parameter.grad = None
