"""Each layer is computed twice."""


# caught by: test_through_window
# mistake: counted_twice
# says: layer 0 was computed 2 times, expected once
# %% through_window: changed
# -         x = compute(i, coming.popleft().wait(), x)
# +         w = coming.popleft().wait()
# +         compute(i, w, x)
# +         x = compute(i, w, x)
# +         del w
