"""What is missing in the mean of all ranks, not in what this rank sent."""


# caught by: test_ErrorFeedback
# mistake: state_between_steps
# says: it remembers what the mean lacks, not what this rank left out
# %% ErrorFeedback: changed
# -         self.memory = corrected - mine
# +         self.memory = corrected - mean
