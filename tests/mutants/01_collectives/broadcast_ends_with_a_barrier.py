"""Ends with torch's barrier, in which all ranks wait for each other."""


# caught by: test_broadcast
# mistake: ready_made
# says: called barrier; build it from send and recv
# %% broadcast: changed
#           dist.recv(tensor, src=root)
# +     dist.barrier()
