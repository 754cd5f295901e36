"""Keeps what the parameters were before, beside the vector."""


# caught by: test_Flat
# mistake: kept_in_memory
# says: the flat keeps 2,568 bytes besides
# %% Flat: changed
#           self.whole = torch.cat([p.detach().reshape(-1) for p in self.parameters])
# +         self.before = [p.data for p in self.parameters]
