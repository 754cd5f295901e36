"""New parameters in place of those of the module."""


# caught by: test_Flat
# mistake: copy_or_view
# %% Flat: changed
#               p.data = part.view(p.shape)
# +         self.parameters = [torch.nn.Parameter(p.detach()) for p in self.parameters]
