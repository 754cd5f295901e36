"""Returns P times Q of the next step before it is a mean."""


# caught by: test_PowerSGD
# mistake: too_early
# says: is 4 times what it should be
# %% PowerSGD: changed
#           dist.all_reduce(self.q)
# +         result = p @ self.q.T
# @@
# -         return p @ self.q.T
# +         return result
