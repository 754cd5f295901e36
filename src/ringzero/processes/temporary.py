"""Where temporary folders go."""

import os
import tempfile

LONGEST = 40  # characters of a folder in which a socket's path still fits: the system allows about 100


def short_temporary_folder(below: int = 0) -> str:
    """The folder for temporary files, or ``/tmp`` if its name is too long for the path of a Unix socket in it.

    ``below`` is the length of the names of folders between the two.
    """
    usual = os.path.realpath(tempfile.gettempdir())  # no link: in a sandbox it would lead nowhere
    return usual if len(usual) + below < LONGEST else "/tmp"
