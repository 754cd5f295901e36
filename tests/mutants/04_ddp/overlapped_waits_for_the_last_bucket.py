"""Only the bucket that left last is waited for, in the hope that the others came before it."""
# caught by: test_Overlapped
# mistake: never_waits
# says: never called wait() on its all_reduce
# %% Overlapped: changed
# -         for bucket in self.buckets:
# -             bucket.wait()
# +         self.buckets[-1].wait()
