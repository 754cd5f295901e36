"""A single layer has a next one, too."""
# caught by: test_through_window
# mistake: special_case
# says: list index out of range
# %% through_window: changed
# -     leaving, coming = {}, deque()
# +     leaving, coming = {}, deque()
# +     assert vectors[-2].numel()
