"""Every vector stays on the device."""


# caught by: test_through_window
# mistake: kept_in_memory
# says: 7 layers were on the device at one time; the window is 1
# %% through_window: changed
# -         x = compute(i, coming.popleft().wait(), x)
# +         kept.append(coming.popleft().wait())
# +         x = compute(i, kept[-1], x)
# @@
# -     inputs, coming = [], deque()
# +     inputs, coming, kept = [], deque(), []
