"""finish() launches what is left, and waits for nothing."""


# caught by: test_DDP
# mistake: never_waits
# says: never called wait()
# %% DDP: changed
# -         super().finish()
