"""What this machine does, measured: collectives, links, a training step with and without overlap, pricing itself.

Each module runs something and returns numbers; pages lay them beside predictions, and ``ringzero bench`` prints them.
"""
