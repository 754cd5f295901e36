"""An exception in an inner no_sync ends the outer one, too."""
# caught by: test_Accumulating
# mistake: state_between_steps
# says: started inside no_sync
# %% Accumulating: changed
#           try:
#               yield
# -         finally:
# -             self.syncing = before
# +         except BaseException:
# +             self.syncing = True
# +             raise
# +         self.syncing = before
