"""One message a parameter, passed off as a bucket."""
# caught by: test_Bucket
# mistake: too_much_sent
# %% Bucket: changed
# -         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts, strict=True)}
# +         self.views = {p: part.view_as(p) for p, part in zip(self.parameters, parts)}
# @@
# -         """Start the all-reduce."""
# -         self.flat /= dist.get_world_size()
# -         self.work = dist.all_reduce(self.flat, async_op=True)
# +         self.works = []
# +         for p in self.parameters:
# +             p.grad /= dist.get_world_size()
# +             self.works.append(dist.all_reduce(p.grad, async_op=True))
# @@
# -         """Return when the mean is there, ready for the next step."""
# -         self.work.wait()
# +         for work in self.works:
# +             work.wait()
