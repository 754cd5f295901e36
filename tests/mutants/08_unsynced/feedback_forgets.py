"""No memory."""


# caught by: test_ErrorFeedback
# says: it is the gradient alone
# %% ErrorFeedback: changed
# -         self.memory = corrected - mine
