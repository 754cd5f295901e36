"""All parameters are taken to be bf16."""
# caught by: test_HostAdam
# mistake: type_fixed
# says: after step 1 parameter 0 is wrong in every element
# %% HostAdam: changed
# -             p.copy_(self.link.to_device(master.to(p.dtype)))
# +             p.copy_(self.link.to_device(master.bfloat16()))
