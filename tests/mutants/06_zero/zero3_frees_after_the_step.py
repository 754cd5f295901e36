"""What was gathered for the backward pass is freed after the step."""


# caught by: test_Zero3
# mistake: kept_in_memory
# %% Zero3: changed
# -         if all(p.grad is None for p in self.flats[i].parameters):
# -             self.flats[i].free()
# @@
#               self.gradients[i] = None
# +             flat.free()
