"""AdamW with the options that are usual."""


# caught by: test_HostAdam
# mistake: argument_ignored
# says: after step 1 parameter 0 is wrong in
# %% HostAdam: changed
# -         self.optimizer = torch.optim.AdamW(self.masters, **adamw)
# +         self.optimizer = torch.optim.AdamW(self.masters, lr=adamw["lr"])
