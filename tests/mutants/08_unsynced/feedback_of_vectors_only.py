"""A memory that is a vector, though the gradient may be a matrix."""


# caught by: test_ErrorFeedback
# mistake: wrong_kind
# says: The size of tensor a (7) must match the size of tensor b (42)
# %% ErrorFeedback: changed
# -         self.memory = 0.0
# +         self.memory = None
# @@
# -         corrected = gradient + self.memory
# +         if self.memory is None:
# +             self.memory = torch.zeros(gradient.numel())
# +         corrected = gradient + self.memory
