"""Is training on N ranks the same as on one? Runs a training step on both, compares them, and names what differs.

    ringzero same train.py:step
    from ringzero.same import compare

A reader of the code begins at ``comparing.py``: which runs there are. ``playing.py`` is what each rank does,
``watching.py`` what is noted of it, ``seen.py`` where the notes first differ, ``causes.py`` and ``gradients.py`` why.
"""

from ringzero.same.comparing import Verdict, compare
from ringzero.same.program import ProgramError

__all__ = ["ProgramError", "Verdict", "compare"]
