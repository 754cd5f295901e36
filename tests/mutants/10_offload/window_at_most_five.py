"""Never more than five layers ahead, whatever the window."""
# caught by: test_through_window
# mistake: threshold_ignored
# %% through_window: changed
#       inputs, coming = [], deque()
# +     k = min(k, 5)
