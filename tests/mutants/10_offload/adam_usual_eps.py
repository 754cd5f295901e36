"""AdamW gets the rate and the decay; betas and ε are the usual ones."""
# caught by: test_HostAdam
# mistake: argument_ignored
# says: after step 1 parameter 0 is wrong in
# %% HostAdam: changed
# -         self.optimizer = torch.optim.AdamW(self.masters, **adamw)
# +         self.optimizer = torch.optim.AdamW(self.masters, lr=adamw["lr"], weight_decay=adamw["weight_decay"])
