"""Makes a new buffer for each step: the memory of the last one is allocated again and again."""


# caught by: test_Bucket
# mistake: kept_in_memory
# says: flat is another tensor the next time
# %% Bucket: changed
# -         self.flat = torch.zeros(sum(sizes))
# -         parts = self.flat.split(sizes)
# +         self.sizes = sizes
# +         self.missing = set()
# +         self.begin()
# +
# +     def begin(self):
# +         self.flat = torch.zeros(sum(self.sizes))
# +         parts = self.flat.split(self.sizes)
# @@
#           self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
#           self.missing = set(self.parameters)
# +         self.done = False
# @@
#           """Take the parameter's gradient in; from now on ``parameter.grad`` is a view of ``flat``."""
# +         if self.done:
# +             self.begin()
# @@
#           self.work.wait()
#           self.missing = set(self.parameters)
# +         self.done = True
