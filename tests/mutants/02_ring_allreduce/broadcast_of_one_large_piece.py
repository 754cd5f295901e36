"""The first piece has nearly everything, the others an element each: nothing is gained by the pipeline."""
# caught by: test_pipelined_broadcast
# mistake: poor_plan
# says: a piece of 31972 bytes, where 8 alike have 4000
# %% pipelined_broadcast: changed
# -     bounds = chunk_bounds(tensor.numel(), chunks).tolist()
# +     small = [min(k, tensor.numel()) for k in range(chunks)]
# +     bounds = [0, *(tensor.numel() - k for k in reversed(small))]
