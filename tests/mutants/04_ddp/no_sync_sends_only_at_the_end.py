"""Everything waits for finish: silent inside, right, and no overlap left."""
# caught by: test_Accumulating
# mistake: no_overlap
# %% Accumulating: changed
# -             super().gradient_ready(parameter)
# +             self.bucket_of[parameter].put(parameter)
# +
# +     def finish(self):
# +         for bucket in self.buckets:
# +             bucket.launch()
# +         super().finish()
