"""There is no self.buckets."""
# caught by: test_Overlapped
# mistake: wrong_kind
# says: self.buckets has buckets of no bytes
# %% Overlapped: changed
# -         self.buckets = [Bucket([trained[i] for i in members]) for members in assign(sizes, cap)]
# -         self.bucket_of = {p: bucket for bucket in self.buckets for p in bucket.parameters}
# +         buckets = [Bucket([trained[i] for i in members]) for members in assign(sizes, cap)]
# +         self.bucket_of = {p: bucket for bucket in buckets for p in bucket.parameters}
# @@
# -         for bucket in self.buckets:
# +         for bucket in dict.fromkeys(self.bucket_of.values()):
#               bucket.wait()
