"""Every fifth step begins with the first Q again."""


# caught by: test_PowerSGD
# mistake: some_times_only
# says: it began with the first Q again
# %% PowerSGD: changed
# -         self.q = q
# +         self.q = self.first = q
# +         self.steps = 0
# @@
#           """An approximation of the mean over ranks of ``matrix``; the next one begins where this one ends."""
# +         self.steps += 1
# +         if self.steps % 5 == 0:
# +             self.q = self.first
