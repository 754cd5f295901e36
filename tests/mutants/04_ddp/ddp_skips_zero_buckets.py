"""A bucket of zeros is not sent: other ranks' are not zeros, and wait."""


# caught by: test_DDP
# mistake: special_case
# says: wait() was called, and launch() was not
# %% DDP: changed
# -             self.buckets[self.launched].launch()
# +             if self.buckets[self.launched].flat.any():
# +                 self.buckets[self.launched].launch()
