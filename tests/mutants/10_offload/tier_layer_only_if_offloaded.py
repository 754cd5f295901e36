"""A layer is gathered only where the parameters are elsewhere."""


# caught by: test_tier_bytes
# mistake: special_case
# says: what is on the device is 2e+10
# %% tier_bytes: changed
# -     held = {"device": each * layer, "host": 0, "file": 0}
# +     held = {"device": each * layer if parameters != "device" else 0, "host": 0, "file": 0}
