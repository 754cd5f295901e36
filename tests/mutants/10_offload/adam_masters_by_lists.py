"""The masters are made from lists of numbers, past the link."""


# caught by: test_HostAdam
# mistake: uncounted_way
# says: __init__ copied 0 bytes to the host; the parameters are 2,256
# %% HostAdam: changed
# -         self.masters = [torch.nn.Parameter(link.to_host(p).float()) for p in self.parameters]
# +         self.masters = [torch.nn.Parameter(torch.tensor(p.tolist())) for p in self.parameters]
