"""The vectors are stepped in the order of the parameters, the last gradient to come first."""
# caught by: test_OverlappedHostAdam
# mistake: order_of_layers
# says: the vector of 140 numbers was stepped before that of 200, with which the backward pass was done earlier
# %% OverlappedHostAdam: changed
# -         for p, copies in self.leaving.items():
# +         for p, copies in sorted(self.leaving.items(), key=lambda item: list(map(id, self.parameters)).index(id(item[0]))):
