"""In the first step it remembers a tensor that the caller uses again."""


# caught by: test_ErrorFeedback
# mistake: copy_or_view
# says: it is the gradient alone
# %% ErrorFeedback: changed
# -         self.memory = 0.0
# +         self.memory = None
# @@
# -         corrected = gradient + self.memory
# +         corrected = gradient if self.memory is None else gradient + self.memory
# @@
# -         self.memory = corrected - mine
# +         self.memory = corrected.sub_(mine)
