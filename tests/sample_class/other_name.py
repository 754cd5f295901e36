"""The reference under a name of the student's own."""
# file name: ring_final_v2.ipynb
