"""Keeps all parameters as lists beside the vectors."""
# caught by: test_Zero1
# mistake: kept_in_memory
# %% Zero1: changed
#           for i, flat in enumerate(self.flats):
# +             flat.spare = flat.whole.tolist()
