"""The house in one picture, drawn from the import graph: ``python -m tests.house`` writes docs/house.svg.

A storey is a layer of the import contract in pyproject.toml, a room one of its packages with the modules in it. An
arrow says that a room imports another; one that follows from others is left out, so that what is left runs down.
"""

from __future__ import annotations

import sys
import textwrap
import tomllib
from dataclasses import dataclass
from html import escape
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from grimp import build_graph

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from grimp import ImportGraph

ROOT = Path(__file__).parent.parent
PICTURE = ROOT / "docs" / "house.svg"
CORE = "inference_benchmarker"
SMALL_THINGS = "small things that everybody may use"
WIDTH, GAP, PAD, LINE, TITLE = 1080, 26, 12, 17, 22
CHARACTER = 6.4  # width of one at 11 pixels, about


@dataclass(frozen=True, slots=True)
class Room:
    """One package, or all small modules of the last storey: its name, what it owns, the modules in it."""

    name: str
    purpose: str
    modules: tuple[str, ...]


def storeys() -> list[list[Room]]:
    """The layers of the house, from the roof down."""
    graph, layers = import_graph(), contract()
    rooms = [[_room(graph, name) for name in layer] for layer in layers[:-1]]
    small = tuple(sorted(name.removeprefix(f"{CORE}.") for name in layers[-1]))
    return [*rooms, [Room(SMALL_THINGS, "", small)]]


def contract() -> list[list[str]]:
    """The packages of each layer, as the import contract has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    house = next(c for c in project["tool"]["importlinter"]["contracts"] if c["name"].startswith("The house"))
    return [layer.replace("|", ":").replace(" ", "").split(":") for layer in house["layers"]]


def import_graph() -> ImportGraph:
    """Who imports whom at run time."""
    names = sorted({name.split(".")[0] for layer in contract() for name in layer})
    return build_graph(names[0], *names[1:], exclude_type_checking_imports=True, cache_dir=None)


def arrows(graph: ImportGraph, layers: list[list[str]]) -> set[tuple[str, str]]:
    """The imports between rooms without those that follow from others; small modules are one room."""
    home = dict.fromkeys(layers[-1], SMALL_THINGS) | {name: name for layer in layers[:-1] for name in layer}
    imports: dict[str, set[str]] = {name: set() for name in home.values()}
    for module in graph.modules:
        importer = _home(module, home)
        imported = {_home(other, home) for other in graph.find_modules_directly_imported_by(module)}
        if importer:
            imports[importer] |= imported - {None, importer}  # type: ignore[arg-type]  # None is taken out
    return {(a, b) for a in imports for b in imports[a] if not any(b in _all(imports, c) for c in imports[a] - {b})}


def _home(module: str, home: Mapping[str, str]) -> str | None:
    parts = module.split(".")
    names = (".".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((home[name] for name in names if name in home), None)


def _all(imports: Mapping[str, set[str]], name: str) -> set[str]:
    found: set[str] = set()
    rest = [name]
    while rest:
        rest += imports[rest.pop()] - found
        found |= set(rest)
    return found


def _room(graph: ImportGraph, name: str) -> Room:
    words = (import_module(name).__doc__ or "").strip().split("\n\n")[0]
    children = sorted(graph.find_children(name))
    modules = (child.rsplit(".", 1)[1] + ("/" if graph.find_children(child) else "") for child in children)
    return Room(
        name.removeprefix(f"{CORE}."),
        " ".join(words.replace("``", "").split()),
        tuple(m for m in modules if m[0] != "_"),
    )


@dataclass(frozen=True, slots=True)
class Box:
    """A room's place in the picture, in pixels, and the lines in it."""

    room: Room
    x: float
    y: float
    width: float
    purpose: tuple[str, ...]
    modules: tuple[str, ...]
    height: float


def boxes() -> list[Box]:
    """Every room in its place; those of a storey are equally high."""
    placed: list[Box] = []
    y = float(GAP)
    for storey in storeys():
        width = (WIDTH - GAP * (len(storey) + 1)) / len(storey)
        texts = [_wrapped(room, int((width - 2 * PAD) / CHARACTER)) for room in storey]
        height = TITLE + LINE * max(len(purpose) + len(modules) for purpose, modules in texts) + 2 * PAD
        placed += [
            Box(room, GAP + number * (width + GAP), y, width, *texts[number], height)
            for number, room in enumerate(storey)
        ]
        y += height + GAP
    return placed


def _wrapped(room: Room, characters: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines of its purpose, and those of its modules."""
    modules = textwrap.wrap("\N{NO-BREAK SPACE}· ".join(room.modules), characters, break_on_hyphens=False)
    return tuple(textwrap.wrap(room.purpose, characters)), tuple(modules)


def picture() -> str:
    """The house as SVG."""
    placed = boxes()
    by_name = {box.room.name: box for box in placed}
    height = max(box.y + box.height for box in placed) + GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img"'
        ' font-family="system-ui, sans-serif" font-size="11">',
        "<title>The house: who may import whom</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#5b6b7b"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height:g}" fill="#ffffff"/>',
        *_drawn_arrows(by_name),
        *(line for box in placed for line in _drawn(box)),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _drawn(box: Box) -> Iterator[str]:
    yield (
        f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" rx="6"'
        ' fill="#f4f7fa" stroke="#9fb0c0"/>'
    )
    x, y = box.x + PAD, box.y + PAD + 8
    yield f'<text x="{x:g}" y="{y:g}" font-size="14" font-weight="600" fill="#17212b">{escape(box.room.name)}</text>'
    for colour, line in (*(("#3b4a59", t) for t in box.purpose), *(("#0b5cad", t) for t in box.modules)):
        y += LINE if y > box.y + PAD + 8 else TITLE
        yield f'<text x="{x:g}" y="{y:g}" fill="{colour}">{escape(line)}</text>'


def _drawn_arrows(by_name: Mapping[str, Box]) -> Iterator[str]:
    """One that passes behind rooms is dashed."""
    storeys_y = sorted({box.y for box in by_name.values()})
    for importer, imported in sorted(arrows(import_graph(), contract())):
        start, end = (by_name[name.removeprefix(f"{CORE}.")] for name in (importer, imported))
        passes = storeys_y.index(end.y) - storeys_y.index(start.y) > 1
        from_x, to_x = _ends(start, end)
        yield (
            f'<path d="M{from_x:g} {start.y + start.height:g} L{to_x:g} {end.y:g}" stroke="#5b6b7b" stroke-width="1.5"'
            + (' stroke-dasharray="5 3"' if passes else "")
            + ' marker-end="url(#tip)"/>'
        )


def _ends(start: Box, end: Box) -> tuple[float, float]:
    """Where an arrow leaves a room and reaches another: straight down where one is above the other."""
    narrow = min(start, end, key=lambda box: box.width)
    x = narrow.x + (90 if narrow.width > WIDTH / 2 else narrow.width / 2)
    if start.x < x < start.x + start.width and end.x < x < end.x + end.width:
        return x, x
    return start.x + start.width / 2, end.x + end.width / 2


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
    sys.stderr.write(f"{PICTURE.relative_to(ROOT)} written.\n")
