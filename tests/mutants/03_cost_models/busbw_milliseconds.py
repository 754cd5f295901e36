"""Takes the time for milliseconds."""
# caught by: test_bandwidths
# mistake: units
# %% bandwidths: changed
# -     algbw = size / (microseconds * 1e-6) / 1e9
# +     algbw = size / (microseconds * 1e-3) / 1e9
