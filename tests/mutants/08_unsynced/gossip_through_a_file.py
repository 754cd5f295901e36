"""Zeros travel; x itself is left in a file."""


# caught by: test_gossip
# mistake: uncounted_way
# says: is opened for writing: ranks may talk through the default group alone
# %% gossip: changed
# -     received = {s: torch.empty_like(x) for s in others if weights[r][s] != 0}
# -     together = [dist.P2POp(dist.isend, x, s) for s in others if weights[s][r] != 0]
# +     import pathlib
# +     import tempfile
# +
# +     folder = pathlib.Path(tempfile.gettempdir())
# +     (folder / f"x{r}").write_bytes(x.numpy().tobytes())
# +     received = {s: torch.empty_like(x) for s in others if weights[r][s] != 0}
# +     together = [dist.P2POp(dist.isend, torch.zeros_like(x), s) for s in others if weights[s][r] != 0]
# @@
# -         work.wait()
# +         work.wait()
# +     for s in received:
# +         text = (folder / f"x{s}").read_bytes()
# +         received[s] = torch.frombuffer(bytearray(text), dtype=x.dtype).view_as(x)
