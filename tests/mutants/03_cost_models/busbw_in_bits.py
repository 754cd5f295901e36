"""Gbit/s, as network cards are sold, where GB/s were asked for."""
# caught by: test_bandwidths
# mistake: units
# says: (8 times it: Gbit/s, not GB/s?)
# %% bandwidths: changed
# -     algbw = size / (microseconds * 1e-6) / 1e9
# +     algbw = 8 * size / (microseconds * 1e-6) / 1e9
