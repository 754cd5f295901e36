"""Changes the scales that it is given."""


# caught by: test_quantise
# mistake: changes_its_input
# says: dequantise changed the integers or scales that it was given
# %% quantise: changed
# -     return integers.float() * scales.repeat_interleave(block)[: integers.numel()]
# +     back = integers.float() * scales.repeat_interleave(block)[: integers.numel()]
# +     scales.zero_()
# +     return back
