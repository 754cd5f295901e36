"""A layer of which each rank has a part."""


# caught by: test_tier_bytes
# mistake: counted_twice
# says: what is on the device is 2.0075e+10
# %% tier_bytes: changed
# -     held = {"device": each * layer, "host": 0, "file": 0}
# +     held = {"device": each * layer / n, "host": 0, "file": 0}
