"""Every rank waits for its send, then receives."""
# caught by: test_ring_all_reduce
# mistake: all_send_first
# %% ring_all_reduce: changed
# -         together = [dist.P2POp(dist.isend, leaving, right), dist.P2POp(dist.irecv, arriving, left)]
# -         for work in dist.batch_isend_irecv(together):
# -             work.wait()
# +         dist.send(leaving, right)
# +         dist.recv(arriving, left)
