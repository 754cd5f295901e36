"""Buckets of 25 MiB, whatever cap says."""
# caught by: test_Overlapped
# mistake: argument_ignored
# says: self.buckets has buckets of 1028 bytes, expected 168, 312, 240, 308
# %% Overlapped: changed
# -         self.buckets = [Bucket([trained[i] for i in members]) for members in assign(sizes, cap)]
# +         self.buckets = [Bucket([trained[i] for i in members]) for members in assign(sizes, 25 * 2**20)]
