"""The first layer is never freed after the backward pass."""


# caught by: test_Zero3
# mistake: kept_in_memory
# says: Free it once it is reduced
# %% Zero3: changed
# -         if all(p.grad is None for p in self.flats[i].parameters):
# +         if i and all(p.grad is None for p in self.flats[i].parameters):
