"""A new vector at each gather: autograd holds on to the old one."""


# caught by: test_Sharded
# mistake: copy_or_view
# says: not gathered again into the same storage
# %% Sharded: changed
# -         self.whole.untyped_storage().resize_(self.whole.nbytes)
# +         self.whole = torch.empty_like(self.whole)
# +         for p, part in zip(self.parameters, self.whole.split([p.numel() for p in self.parameters]), strict=True):
# +             p.data = part.view(p.shape)
