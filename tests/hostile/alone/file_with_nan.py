"""A number that JSON does not have."""

# verdict: invalid submission
# says: NaN
# %% hand in
path.write_text('{"nbformat": 4, "nbformat_minor": NaN, "metadata": {}, "cells": []}')
