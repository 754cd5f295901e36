"""Units: modules whose parameters are gathered, computed with and freed together."""

from torch import nn

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def default_units(module):
    """The module's children, and instead of a container what it holds."""
    for child in module.children():
        if isinstance(child, CONTAINERS):
            yield from default_units(child)
        else:
            yield child


def parameters_of(units, module, trained):
    """``{unit: {name: parameter}}`` of the ``trained`` ones: each belongs to the innermost unit that holds it.

    ``module`` itself comes first, with those that are in no unit, or in more than one as tied parameters are. Raises
    ValueError for a unit that is not in the module.
    """
    units, owners = {module, *units}, {}

    def walk(inner, unit):
        unit = inner if inner in units else unit
        for parameter in inner.parameters(recurse=False):
            owners.setdefault(parameter, {}).setdefault(unit)
        for child in inner.children():
            walk(child, unit)

    if strangers := units.difference(module.modules()):
        raise ValueError(f"units has a {type(strangers.pop()).__name__} that is not in the {type(module).__name__}")
    walk(module, module)
    found = {inner: {} for inner in module.modules() if inner in units}
    for name, parameter in trained.items():
        unit, *others = owners[parameter]
        found[module if others else unit][name] = parameter
    return found
