"""The memory is halved in each step."""


# caught by: test_ErrorFeedback
# mistake: state_between_steps
# says: only 0.5 times what was left out is added
# %% ErrorFeedback: changed
# -         self.memory = corrected - mine
# +         self.memory = 0.5 * (corrected - mine)
