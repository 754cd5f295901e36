"""Taking turns: what is compared runs alternately, in one process, each as it would run alone."""

import random

from ringzero.collectives import event_threads


def shuffled(names, number):
    """``names`` in an order of turn ``number``, the same on every rank: nobody always follows the same neighbour."""
    names = list(names)
    random.Random(number).shuffle(names)
    return names


def of(is_ours):
    """Prepare for the turn of something of ours, which calms gloo's event threads, or of a peer, which does not."""
    if is_ours:
        event_threads.calm()
    else:
        event_threads.as_gloo_has_them()
