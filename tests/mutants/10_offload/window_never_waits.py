"""Takes what the copy makes without waiting."""


# caught by: test_through_window
# mistake: never_waits
# says: and nobody had waited for its copy
# %% through_window: changed
# -         x = compute(i, coming.popleft().wait(), x)
# +         x = compute(i, coming.popleft()._made, x)
