"""Receives into float32, whatever the tensor is."""
# caught by: test_ring_all_gather
# mistake: type_fixed
# %% ring_all_gather: changed
# -         together = [
# -             dist.P2POp(dist.isend, chunks[(rank - step) % n], (rank + 1) % n),
# -             dist.P2POp(dist.irecv, chunks[(rank - 1 - step) % n], (rank - 1) % n),
# -         ]
# +         landing = torch.empty(chunks[(rank - 1 - step) % n].numel())
# +         together = [
# +             dist.P2POp(dist.isend, chunks[(rank - step) % n].float(), (rank + 1) % n),
# +             dist.P2POp(dist.irecv, landing, (rank - 1) % n),
# +         ]
# @@
# -             work.wait()
# +             work.wait()
# +         chunks[(rank - 1 - step) % n].copy_(landing)
