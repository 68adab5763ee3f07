"""A study as data, and the one runner of all of them: items, rows, progress, pictures."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from headstart import temporary
from headstart._core import HeadstartError
from headstart._environment import Folders
from headstart.report.charts import altair, styled
from headstart_lab.studies._lab import Lab, Report, Steps
from headstart_lab.studies._rows import Basis, Input, Row

if TYPE_CHECKING:
    from headstart.report.charts import Chart

Draw = Callable[[str, "Chart"], None]
"""Called with an item and its picture."""
L = TypeVar("L", bound=Lab[Any])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Study(Generic[L]):
    """What a paper gives, and how each part of it is computed."""

    name: str
    """As `headstart reproduce` takes it."""
    title: str
    """The paper in one line."""
    seeds: str
    """The seeds of its random numbers, in words."""
    lab: type[L]
    """The laboratory of a run."""
    steps: Mapping[str, Callable[[L], Steps]]
    """Each item that can be asked for (a figure, a table, findings); its docstring begins with a line on what it is."""
    figures: Mapping[str, Callable[[L], Any]] = dataclasses.field(default_factory=dict)
    """The pictures of those items that have one, drawn once their runs are done; `None` where a trace is absent."""
    input: Input
    """What the rows rest on, unless their item or they themselves say otherwise."""
    inputs: Mapping[str, Input] = dataclasses.field(default_factory=dict)
    """The same of items that rest on something else."""
    basis: Basis | None = None
    """The basis of every row, where it is one for all."""

    @property
    def items(self) -> dict[str, str]:
        """Each item, and one line on what it is."""
        return {name: (steps.__doc__ or "").strip().split("\n")[0] for name, steps in self.steps.items()}

    def chosen(self, items: list[str]) -> list[str]:
        """Return the items asked for, each once and in their order; all of them if none is named.

        Raises:
            HeadstartError: There is no such item.
        """
        for item in items:
            if item not in self.steps:
                raise HeadstartError(f'{self.name}: no item "{item}"; allowed: {", ".join(self.steps)}')
        return list(dict.fromkeys(items)) or list(self.steps)

    def run(
        self, items: list[str], report: Report, draw: Draw | None = None, *, folders: Folders | None = None
    ) -> list[Row]:
        """Compute the rows of `items` in their order, of all items if the list is empty.

        `report` is called with what is under way and the share done, `draw` with the pictures. Without `folders`, the
        user's, traces are looked for in the checkout only, and no finished run is kept.

        Raises:
            HeadstartError: There is no such item, or pictures are asked for and `headstart[report]` is not installed.
        """
        asked = self.chosen(items)
        drawn = [item for item in asked if item in self.figures] if draw is not None else []
        if drawn:
            altair(f"reproduce {self.name} --html")
        with temporary.folder() as scratch:
            lab = self.lab(scratch, report, folders=folders)
            done = lab.finish({item: self.steps[item](lab) for item in asked})
            for item in drawn:
                if draw is not None and (chart := self.figures[item](lab)) is not None:
                    draw(item, styled(chart))
        return [self._declared(item, row) for item in asked for row in done[item]]

    def _declared(self, item: str, row: Row) -> Row:
        """Return a row of `item` with what the study declares of it."""
        rests_on = row.input or self.inputs.get(item, self.input)
        return dataclasses.replace(row, item=item, basis=self.basis or row.basis, input=rests_on)
