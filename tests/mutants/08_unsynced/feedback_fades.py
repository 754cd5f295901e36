"""The memory is halved in each step."""


# caught by: test_ErrorFeedback
# says: on rank 0 in step 2 the compressed vector is off by up to
# %% ErrorFeedback: changed
# -         self.memory = corrected - mine
# +         self.memory = 0.5 * (corrected - mine)
