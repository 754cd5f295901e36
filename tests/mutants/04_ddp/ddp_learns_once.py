"""What the first step did not use counts as unused for ever."""
# caught by: test_DDP
# mistake: without_gradient
# says: after 3 steps
# %% DDP: changed
#       def finish(self):
# +         if not hasattr(self, "unused"):
# +             self.unused = [p for b in self.buckets for p in b.missing if p.grad is None]
# +         for p in self.unused:
# +             p.grad = None
# +             self.bucket_of[p].missing.add(p)
#           for bucket in self.buckets:
