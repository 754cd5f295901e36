"""Waits for the buckets that left in the backward pass, and for the others not at all."""


# caught by: test_DDP
# mistake: never_waits
# says: never called wait()
# %% DDP: changed
#                   bucket.put(parameter)
# +         on_their_way = self.launched
# @@
# -         super().finish()
# +         for bucket in self.buckets[:on_their_way]:
# +             bucket.wait()
# +         for bucket in self.buckets[on_their_way:]:
# +             bucket.missing = set(bucket.parameters)
