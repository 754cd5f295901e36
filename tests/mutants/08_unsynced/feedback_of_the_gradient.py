"""What is left of this gradient alone: what was left out before is lost."""


# caught by: test_ErrorFeedback
# mistake: state_between_steps
# says: what was left out before that step is lost
# %% ErrorFeedback: changed
# -         self.memory = corrected - mine
# +         self.memory = gradient - mine
