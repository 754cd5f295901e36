"""Adam in place of AdamW: the decay goes into the gradient."""


# caught by: test_HostAdam
# mistake: one_of_a_kind
# says: after step 1 parameter 0 is wrong in
# %% HostAdam: changed
# -         self.optimizer = torch.optim.AdamW(self.masters, **adamw)
# +         self.optimizer = torch.optim.Adam(self.masters, **adamw)
