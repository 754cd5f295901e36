"""Rank 0 tells everyone in each step which parameters it has used."""


# caught by: test_DDP
# mistake: too_much_sent
# says: the ranks disagree on collective
# %% DDP: changed
#       def finish(self):
# +         used = torch.tensor([float(p not in b.missing) for b in self.buckets for p in b.parameters])
# +         dist.broadcast(used, src=0)
