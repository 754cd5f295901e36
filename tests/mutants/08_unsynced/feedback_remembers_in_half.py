"""The memory is kept in fp16."""


# caught by: test_ErrorFeedback
# mistake: rounded_wrongly
# says: in step 2 the compressed vector is off
# %% ErrorFeedback: changed
# -         self.memory = corrected - mine
# +         self.memory = (corrected - mine).half().float()
