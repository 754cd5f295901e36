"""The memory is added to what comes back, where it is not compressed."""


# caught by: test_ErrorFeedback
# mistake: state_between_steps
# says: it is the gradient alone
# %% ErrorFeedback: changed
# -         corrected = gradient + self.memory
# -         mean, mine = self.compress(corrected)
# -         self.memory = corrected - mine
# -         return mean
# +         mean, mine = self.compress(gradient)
# +         mean, self.memory = mean + self.memory, gradient - mine
# +         return mean
