"""A tree of zeros; the tensor goes by the backend under the process group, which is not recorded."""
# caught by: test_tree_broadcast
# mistake: uncounted_way
# %% tree_broadcast: changed
# -     place = (rank - root) % n
# +     place, mine, tensor = (rank - root) % n, tensor, torch.zeros_like(tensor)
# @@
# -             dist.recv(tensor, src=(rank - reach) % n)
# +             dist.recv(tensor, src=(rank - reach) % n)
# +     options = dist.BroadcastOptions()
# +     options.rootRank = root
# +     dist.group.WORLD._get_backend(torch.device("cpu")).broadcast([mine], options).wait()
