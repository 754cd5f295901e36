"""Launches from the last bucket to the first, so all wait for the one that is full last."""


# caught by: test_DDP
# mistake: reversed
# says: but it left when layer 0 had begun
# %% DDP: changed
# -         while self.launched < len(self.buckets) and not self.buckets[self.launched].missing:
# -             self.buckets[self.launched].launch()
# +         while self.launched < len(self.buckets) and not self.buckets[-1 - self.launched].missing:
# +             self.buckets[-1 - self.launched].launch()
