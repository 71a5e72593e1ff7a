"""A recipe as files have it."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from certeq.base.errors import InputError
from certeq.base.forms import Finite, Whole
from certeq.data.recipes.axes import Axis, Bins, Clusters, Labels
from certeq.data.recipes.columns import Kind, Label

FIELDS: dict[str, tuple[type[Axis], tuple[str, ...]]] = {  # which field tells what an axis is, and what it is made of
    "labels": (Labels, ("column", "kind", "labels")),
    "edges": (Bins, ("column", "edges")),
    "clusters": (Clusters, ("clusters", "centers", "scale")),
}


class AxisForm(Struct):
    """One axis: the fields of labels, of bins or of clusters."""

    column: str | UnsetType = UNSET
    kind: Kind | UnsetType = UNSET
    labels: tuple[Label, ...] | UnsetType = UNSET
    edges: tuple[Finite, ...] | UnsetType = UNSET
    clusters: tuple[str, ...] | UnsetType = UNSET
    centers: tuple[tuple[Finite, ...], ...] | UnsetType = UNSET
    scale: tuple[Finite, ...] | UnsetType = UNSET

    @classmethod
    def of(cls, axis: Axis) -> AxisForm:
        """The form of an axis."""
        fields = next(fields for kind, fields in FIELDS.values() if isinstance(axis, kind))
        return cls(**dict(zip(fields, vars(axis).values(), strict=True)))

    def axis(self) -> Axis:
        """The axis that it is the form of."""
        told = {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not UNSET}
        kind, fields = next((FIELDS[name] for name in FIELDS if name in told), (None, ()))
        if kind is None:
            raise InputError(f"It needs 'labels', 'edges' or 'clusters'; got the fields {', '.join(told)}.")
        lacking = [name for name in fields if name not in told]
        if lacking:
            raise InputError(f"It needs {lacking[0]!r}.")
        if self.kind == "integer":  # another program may have written 3.0 for 3
            told["labels"] = tuple(_whole(label) for label in told["labels"])
        return kind(*(told[name] for name in fields))


class RecipeForm(Struct):
    """Axes, and the cells of the states."""

    version: Whole
    axes: Annotated[list[AxisForm], Meta(min_length=1)]
    cells: Annotated[list[list[Whole]], Meta(min_length=1)]


def _whole(label: Any) -> Any:
    return int(label) if isinstance(label, float) and label.is_integer() else label
