"""A plain reduce-scatter of fp32."""


# caught by: test_quantised_reduce_scatter
# mistake: too_much_sent
# says: rank 0 sent 1,536 bytes; 3 times 128 numbers of one byte with a scale for each 32 are 432
# %% quantised_reduce_scatter
def quantised_reduce_scatter(vector, block):
    return reduce_scatter(vector.clone()).clone()
