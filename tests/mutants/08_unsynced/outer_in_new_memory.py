"""The new x takes the place of the parameter's memory, which keeps what the local steps left."""


# caught by: test_OuterStep
# mistake: copy_or_view
# says: parameters have other memory now
# %% OuterStep: changed
# -         self.velocities = [torch.zeros_like(start) for start in self.starts]
# +         self.velocities = [torch.zeros_like(p) for p in parameters]
# @@
# -         """End a round: all ranks have the new parameters."""
# +         """Called on all ranks at the end of a round."""
# @@
# -             change = start - p
# -             dist.all_reduce(change)
# -             change /= dist.get_world_size()
# +             mean = p.detach().clone()
# +             dist.all_reduce(mean)
# +             change = start - mean / dist.get_world_size()
# @@
# -             start.sub_(self.lr * (change + self.momentum * velocity))
# -             p.copy_(start)
# +             start -= self.lr * (change + self.momentum * velocity)
# +             p.data = start.clone()
