"""Units: modules whose parameters are gathered, computed with and freed together."""

from collections.abc import Iterable, Iterator, Mapping

from torch import nn

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


def default_units(module: nn.Module) -> Iterator[nn.Module]:
    """The module's children; in place of a container among them, what it holds."""
    for child in module.children():
        if isinstance(child, CONTAINERS):
            yield from default_units(child)
        else:
            yield child


def parameters_of(
    units: Iterable[nn.Module], module: nn.Module, trained: Mapping[str, nn.Parameter]
) -> dict[nn.Module, dict[str, nn.Parameter]]:
    """``{unit: {name: parameter}}`` of the ``trained`` ones: each belongs to the innermost unit that holds it.

    ``module`` itself comes first. It has the parameters that are in no unit, and those that are in several, as tied
    parameters may be. Raises ValueError for a unit that is not in the module.
    """
    units = {module, *units}
    owners: dict[nn.Parameter, dict[nn.Module, None]] = {}  # the units that hold a parameter, in order

    def walk(inner, unit):
        unit = inner if inner in units else unit
        for parameter in inner.parameters(recurse=False):
            owners.setdefault(parameter, {}).setdefault(unit)
        for child in inner.children():
            walk(child, unit)

    if strangers := units.difference(module.modules()):
        raise ValueError(f"units has a {type(strangers.pop()).__name__} that is not in the {type(module).__name__}")
    walk(module, module)
    found: dict[nn.Module, dict[str, nn.Parameter]] = {inner: {} for inner in module.modules() if inner in units}
    for name, parameter in trained.items():
        unit, *others = owners[parameter]
        found[module if others else unit][name] = parameter
    return found
