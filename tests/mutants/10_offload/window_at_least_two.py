"""A single layer has a next one, too."""
# caught by: test_through_window
# says: list index out of range
# %% through_window: changed
# -     leaving, coming = {}, deque()
# +     leaving, coming = {}, deque()
# +     assert vectors[-2].numel()
