"""After a step with unused parameters all buckets wait for finish()."""
# caught by: test_DDP
# mistake: no_overlap
# says: left after the backward pass
# %% DDP: changed
# -             self.launch_full_ones()
# -
# +             if not hasattr(self, "holes") or not self.holes:
# +                 self.launch_full_ones()
# +
# @@
#       def finish(self):
# +         self.holes = any(b.missing for b in self.buckets)
