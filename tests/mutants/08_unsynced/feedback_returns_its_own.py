"""It returns what this rank sent."""


# caught by: test_ErrorFeedback
# mistake: not_exchanged
# says: that is what this rank sent, not the mean
# %% ErrorFeedback: changed
# -         return mean
# +         return mine
