"""A loop of isends that keeps the last handle alone, and waits for that."""
# caught by: test_broadcast
# mistake: never_waits
# says: send
# %% broadcast: changed
# -                 dist.send(tensor, dst=other)
# +                 work = dist.isend(tensor, dst=other)
# +         if n > 1:
# +             work.wait()
