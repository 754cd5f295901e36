"""Frees a layer at the hook of each parameter, not when its last gradient is there: right for a single matrix."""
# caught by: test_Zero3
# mistake: too_early
# %% Zero3: changed
# -         if all(p.grad is None for p in self.flats[i].parameters):
# -             self.flats[i].free()
# +         self.flats[i].free()
