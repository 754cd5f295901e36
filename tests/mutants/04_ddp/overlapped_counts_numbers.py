"""Buckets of cap numbers, not bytes: four times too large."""


# caught by: test_Overlapped
# mistake: units
# says: self.buckets has buckets of 480, 548 bytes
# %% Overlapped: changed
# -         sizes = [p.numel() * p.element_size() for p in trained]
# +         sizes = [p.numel() for p in trained]
