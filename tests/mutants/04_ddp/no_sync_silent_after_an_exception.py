"""Without finally: after an exception inside, the ranks never average again."""
# caught by: test_Accumulating
# %% Accumulating: changed
# -         try:
# -             yield
# -         finally:
# -             self.syncing = before
# +         yield
# +         self.syncing = before
