"""How many buckets have left is counted for all models together."""
# caught by: test_DDP
# mistake: state_between_steps
# says: raised AttributeError
# %% DDP: changed
# -         self.launched = 0
# -
# +         DDP.launched = 0
# +
# @@
# -             self.launched += 1
# +             DDP.launched += 1
