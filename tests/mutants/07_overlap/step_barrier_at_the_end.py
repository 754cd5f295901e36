"""A barrier after the last wait."""
# caught by: test_backward_pass
# mistake: too_much_sent
# %% backward_pass: changed
#           gradients += flat.split(sizes)
# +     dist.barrier()
#       return gradients[::-1]
