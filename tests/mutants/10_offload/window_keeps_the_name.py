"""The vector's name keeps it on the device when the next copy begins."""


# caught by: test_through_window
# mistake: kept_in_memory
# says: 2 layers were on the device at one time; the window is 1
# %% through_window: changed
# -         x = compute(i, coming.popleft().wait(), x)
# +         vector = coming.popleft().wait()
# +         x = compute(i, vector, x)
