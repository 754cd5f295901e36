"""Local SGD in whole bytes."""


# caught by: test_bytes_a_step
# mistake: rounded_wrongly
# says: is 41.1429, expected 41.9048
# %% bytes_a_step: changed
# -         "local SGD": whole / h,
# +         "local SGD": whole // h,
