"""Without finally: after an exception inside, the ranks never average again."""
# caught by: test_Accumulating
# mistake: state_between_steps
# %% Accumulating: changed
# -         try:
# -             yield
# -         finally:
# -             self.syncing = before
# +         yield
# +         self.syncing = before
