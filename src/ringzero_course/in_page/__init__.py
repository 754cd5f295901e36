"""What pages run in MicroPython, beside ``costs.page``: a reader's program for a rank, run, judged and drawn.

``running`` runs N generators that send and receive, ``verdict`` says whether they have computed an all-reduce,
``space_time`` draws what was sent, and ``writing`` does all three for one text. CPython runs the same source.
"""
