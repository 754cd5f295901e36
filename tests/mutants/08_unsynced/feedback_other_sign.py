"""What was sent less the sum: the memory has the wrong sign."""


# caught by: test_ErrorFeedback
# mistake: reversed
# says: it is taken off, not added: the memory is the sum less what was sent
# %% ErrorFeedback: changed
# -         self.memory = corrected - mine
# +         self.memory = mine - corrected
