"""To be safe, all state goes from rank 0 to everyone in each step."""


# caught by: test_Overlapped
# mistake: too_much_sent
# says: called broadcast in a step
# %% Overlapped: changed
#               bucket.wait()
# +         start_alike(self.module)
