"""Forgets to start from the first bucket again in the next step."""
# caught by: test_DDP
# mistake: state_between_steps
# %% DDP: changed
# -     """As ``Accumulating``; parameters may go without a gradient on some ranks, or on all."""
# -
# -     launched = 0  # buckets on their way
# +     launched = 0
# @@
# -         self.launched = 0
