"""To be safe, everything is launched in finish: right, and no overlap."""
# caught by: test_DDP
# mistake: no_overlap
# %% DDP: changed
# -     """As ``Accumulating``; parameters may go without a gradient on some ranks, or on all."""
# -
# -     launched = 0  # buckets on their way
# +     launched = 0
# @@
# -             self.launch_full_ones()
