"""No memory."""


# caught by: test_ErrorFeedback
# mistake: state_between_steps
# says: it is the gradient alone
# %% ErrorFeedback: changed
# -         self.memory = corrected - mine
