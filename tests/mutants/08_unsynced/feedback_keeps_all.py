"""Remembers all of the sum, also what was sent."""


# caught by: test_ErrorFeedback
# mistake: state_between_steps
# says: it remembers all of the sum, also what was sent
# %% ErrorFeedback: changed
# -         self.memory = corrected - mine
# +         self.memory = corrected
