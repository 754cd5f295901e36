"""A number where the cells should be."""

# verdict: invalid submission
# says: not a valid notebook
# %% hand in
path.write_text('{"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": 7}')
