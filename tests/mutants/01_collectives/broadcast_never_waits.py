"""Starts its messages and never waits for them."""
# caught by: test_broadcast
# mistake: never_waits
# %% broadcast: changed
# -                 dist.send(tensor, dst=other)
# +                 dist.isend(tensor, dst=other)
# @@
# -         dist.recv(tensor, src=root)
# +         dist.irecv(tensor, src=root)
