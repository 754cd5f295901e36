"""Only what is an Exception ends it; after an interrupted cell the ranks never average again."""


# caught by: test_Accumulating
# mistake: special_case
# says: wait() was called, and launch() was not
# %% Accumulating: changed
# -         finally:
# +         except Exception:
# @@
#               self.syncing = before
# +             raise
# +         self.syncing = before
