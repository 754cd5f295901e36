"""Settings of nbgrader's configuration and command line: which there are, and which sets nothing at all.

traitlets warns of a setting that does not exist, and goes on without. A grader that goes on without is wrong.
"""

import difflib

from traitlets import HasTraits
from traitlets.config import Config, Configurable


def settings_of(step):
    """The settings of a step of grading, defaults too; a step may be a function, which has none."""
    names = step.traits(config=True) if isinstance(step, HasTraits) else ()
    return {name: getattr(step, name) for name in names}


def why_no_setting(*configured):
    """Why the configuration of one of these objects sets what it does not have; "" if it does not.

    traitlets warns of such a setting, and goes on without.
    """
    for each in filter(lambda each: isinstance(each, Configurable), configured):
        known = each.traits(config=True)
        for name, value in each._find_my_config(each.config).items():
            if name not in known and not isinstance(value, Config):
                which = type(each).__name__
                return f"Nothing was graded: {which} has no setting {name!r}. It has {', '.join(sorted(known))}"
    return ""


def why_no_class(words):
    """Why a command line, as a configuration, sets something of a class that does not exist; "" if it does not."""
    known, more = set(), [Configurable]
    while more:
        each = more.pop()
        known.add(each.__name__)
        more += each.__subclasses__()
    for name in filter(lambda name: words[name] and name not in known, words):  # some are empty: nothing was said
        close = "".join(f" Did you mean --{each}?" for each in difflib.get_close_matches(name, known, 1))
        return f"Nothing was graded: --{name}.{next(iter(words[name]))} sets nothing, there is no {name}.{close}"
    return ""
