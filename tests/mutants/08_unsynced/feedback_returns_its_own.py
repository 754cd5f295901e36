"""It returns what this rank sent."""


# caught by: test_ErrorFeedback
# says: on rank 0 in step 1 the returned vector is off by up to
# %% ErrorFeedback: changed
# -         return mean
# +         return mine
