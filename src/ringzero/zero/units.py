"""Units: modules whose parameters are gathered, computed with and freed together."""

from collections.abc import Iterable, Iterator, Mapping

from torch import nn

CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)
NEVER_CALLED = (nn.ParameterList, nn.ParameterDict)


def default_units(module: nn.Module) -> Iterator[nn.Module]:
    """The module's children. In place of a container among them, what it holds; in place of a child that has a stack of
    blocks somewhere inside, as a transformer has, the child's own units.
    """
    for child in module.children():
        if isinstance(child, CONTAINERS):
            yield from _held_by(child)
        elif any(_is_stack(inner) for inner in child.modules()):
            yield from default_units(child)
        elif not isinstance(child, NEVER_CALLED):
            yield child


def _held_by(container: nn.Module) -> Iterator[nn.Module]:
    for child in container.children():
        if isinstance(child, CONTAINERS):
            yield from _held_by(child)
        elif not isinstance(child, NEVER_CALLED):
            yield child


def _is_stack(module: nn.Module) -> bool:
    """Whether it holds several modules of one class that have parts themselves."""
    if not isinstance(module, CONTAINERS):
        return False
    kinds = [type(child) for child in module.children() if next(child.children(), None) is not None]
    return len(kinds) > len(set(kinds))


def in_words(parts: Mapping[nn.Module, Mapping[str, nn.Parameter]]) -> str:
    """Which modules the units are, with their numbers of parameters: "12 Block: 85,054,464; the GPT itself: 39,000"."""
    module, *units = parts
    kinds: dict[str, list[int]] = {}
    for unit in units:
        kinds.setdefault(type(unit).__name__, []).append(sum(p.numel() for p in parts[unit].values()))
    said = [f"{len(sizes)} {kind}: {sum(sizes):,}" for kind, sizes in kinds.items() if sum(sizes)]
    rest = sum(p.numel() for p in parts[module].values())
    return "; ".join([*said, f"the {type(module).__name__} itself: {rest:,}"])


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
