"""In the first step all buckets leave after the backward pass, to see first what there is."""


# caught by: test_Overlapped
# mistake: no_overlap
# says: step 1, bucket 1 of 4: full when layer 3 was done, but it left after the backward pass
# %% Overlapped: changed
#           self.bucket_of = {p: bucket for bucket in self.buckets for p in bucket.parameters}
# +         self.first = True
# @@
# -         if not bucket.missing:
# +         if not bucket.missing and not self.first:
# @@
#           for bucket in self.buckets:
# +             if self.first:
# +                 bucket.launch()
# +         for bucket in self.buckets:
# @@
#               bucket.wait()
# +         self.first = False
