"""A memory that is a vector, though the gradient may be a matrix."""


# caught by: test_ErrorFeedback
# says: called in mean
# %% ErrorFeedback: changed
# -         self.memory = 0.0
# +         self.memory = None
# @@
# -         corrected = gradient + self.memory
# +         if self.memory is None:
# +             self.memory = torch.zeros(gradient.numel())
# +         corrected = gradient + self.memory
