"""A layer is computed when it is there, though the one before is not done."""


# caught by: test_smallest_window
# mistake: too_early
# says: the window is 3, expected 2 (1.5 times it)
# %% smallest_window: changed
# -             done.append(max(copied, done[-1] if done else 0.0) + computes[i])
# +             done.append(copied + computes[i])
