"""Buckets of one size have one flat between them."""
# caught by: test_Bucket
# mistake: one_for_all
# %% Bucket: changed
# -         self.flat = torch.zeros(sum(sizes))
# +         flats = Bucket.__dict__.get("flats") or {}
# +         Bucket.flats = flats
# +         self.flat = flats.setdefault(sum(sizes), torch.zeros(sum(sizes)))
