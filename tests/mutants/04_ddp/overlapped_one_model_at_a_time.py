"""The buckets are kept for all models together: the last model's take the place of the others'."""
# caught by: test_Overlapped
# mistake: one_for_all
# %% Overlapped: changed
# -         self.bucket_of = {p: bucket for bucket in self.buckets for p in bucket.parameters}
# +         Overlapped.bucket_of = {p: bucket for bucket in self.buckets for p in bucket.parameters}
