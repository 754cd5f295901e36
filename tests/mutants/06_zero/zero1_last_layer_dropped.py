"""The last layer is never stepped."""


# caught by: test_Zero1
# mistake: last_left_out
# says: after the first step the shard of layers.9
# %% Zero1: changed
# -         for i, flat in enumerate(self.flats):
# +         for i, flat in enumerate(self.flats[:-1]):
