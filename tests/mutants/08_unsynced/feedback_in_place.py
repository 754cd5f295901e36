"""The memory is added into the gradient that was given."""


# caught by: test_ErrorFeedback
# mistake: changes_its_input
# says: rank 0 changed a gradient it was given
# %% ErrorFeedback: changed
# -         corrected = gradient + self.memory
# +         corrected = gradient.add_(self.memory)
