"""0 is set to 1 in the vector that was given, so that it has a sign."""


# caught by: test_majority
# mistake: changes_its_input
# says: changed the vector it was given
# %% majority: changed
#       """Eight signs in a byte: bit i % 8 of byte i // 8 is 1 unless x[i] is below 0."""
# +     x[x == 0] = 1.0
