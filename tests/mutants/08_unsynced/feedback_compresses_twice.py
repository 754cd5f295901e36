"""Compresses once for the mean and once for the memory."""


# caught by: test_ErrorFeedback
# mistake: too_much_sent
# says: rank 0 called compress 10 times in 5 steps
# %% ErrorFeedback: changed
# -         mean, mine = self.compress(corrected)
# -         self.memory = corrected - mine
# -         return mean
# +         self.memory = corrected - self.compress(corrected)[1]
# +         return self.compress(corrected)[0]
