"""What is on its way is kept for all buckets together: with two of them only the last is waited for."""
# caught by: test_Bucket
# mistake: one_for_all
# %% Bucket: changed
# -         self.work = dist.all_reduce(self.flat, async_op=True)
# +         Bucket.work = dist.all_reduce(self.flat, async_op=True)
# @@
# -         self.work.wait()
# +         Bucket.work.wait()
