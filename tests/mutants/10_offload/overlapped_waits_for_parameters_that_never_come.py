"""Every parameter must have a gradient."""
# caught by: test_OverlappedHostAdam
# mistake: without_gradient
# says: raised KeyError: Parameter containing
# %% OverlappedHostAdam: changed
# -         for p, copies in self.leaving.items():
# +         for p, copies in [(p, self.leaving[p]) for p in self.parameters[::-1]]:
