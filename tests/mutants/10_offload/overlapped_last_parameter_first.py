"""The last parameter is stepped first, in whatever order the backward pass comes to them."""
# caught by: test_OverlappedHostAdam
# mistake: order_of_layers
# says: the vector of 25 numbers was stepped before that of 40, with which the backward
# %% OverlappedHostAdam: changed
# -         for p, copies in self.leaving.items():
# +         for p, copies in [(p, self.leaving[p]) for p in reversed(self.parameters) if p in self.leaving]:
