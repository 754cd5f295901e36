"""Boxes for what nobody trusts: a sandbox around a command, what its processes may take, and nothing left of them."""
