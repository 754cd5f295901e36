"""What was just averaged is averaged once more at the end."""


# caught by: test_local_sgd
# mistake: too_much_sent
# says: after step 6 of 6, with h = 3, rank 0 gave all_reduce 856 bytes, expected 428
# %% local_sgd: changed
# -         if step % h == 0 or step == len(batches):
# +         for _ in range((step % h == 0) + (step == len(batches))):
