"""Copies k layers at the begin, however few there are."""
# caught by: test_through_window
# mistake: special_case
# says: list index out of range
# %% through_window: changed
# -     inputs, coming = [], deque()
# +     inputs, coming = [], deque(link.start_to_device(vectors[i]) for i in range(k))
