"""High rooms may import low ones, never the reverse; and the public door is light."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import certeq

ROOT = Path(certeq.__file__).parent
LAYERS = [  # high to low; rooms on one line know nothing of one another
    {"cli"},
    {"experiments"},
    {"report"},
    {"questions"},
    {"learning"},
    {"regularizers"},
    {"planners", "worlds"},
    {"model"},
    {"data"},
    {"base"},
]
LEVEL = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
ROOMS = sorted(path.stem for path in ROOT.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists())
HEAVY = ("numba", "scipy", "matplotlib", "gymnasium", "polars", "pandas", "dask", "minari", "typer")


def imported_rooms(source):
    """Rooms of certeq that a file reaches for, by whatever kind of import, also through the public names."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are written in full"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "certeq":
            names = [f"certeq.{node.attr}"]
        else:
            continue
        for package, _, rest in (name.partition(".") for name in names):
            room = rest.split(".")[0]
            if package == "certeq" and room and not room.startswith("__"):
                yield {**certeq._HOME_OF, **certeq._MODULES}.get(room, f"certeq.{room}").split(".")[1]


def files_of(room):
    return sorted((ROOT / room).rglob("*.py")) if (ROOT / room).is_dir() else [ROOT / f"{room}.py"]


@pytest.mark.parametrize("room", [room for room in ROOMS if not room.startswith("__")])
def test_imports_go_only_downward(room):
    assert room in LEVEL, f"place {room!r} in LAYERS of {Path(__file__).name}"
    for path in files_of(room):
        for other in set(imported_rooms(path.read_text())) - {room}:
            assert other in LEVEL, f"{path.name} imports {other!r}: place it in LAYERS"
            assert LEVEL[other] > LEVEL[room], f"{path.relative_to(ROOT)} ({room}) imports {other}, which is not lower"


@pytest.mark.parametrize(
    "line",
    [
        "from certeq.cli import main",
        "import certeq.cli.learn",
        "from certeq import cli",
        "def f():\n    from certeq import plan",
        "import certeq\ncerteq.plan(1)",
    ],
)
def test_every_way_to_import_is_seen(line):
    assert set(imported_rooms(line)) & {"cli", "learning"}


def imported_at_once(path, modules):
    """Modules of certeq that a file needs before it is ready, itself not counted; what functions import comes later."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            yield from inner & modules or {node.module} & modules
        elif isinstance(node, ast.Import):
            yield from {alias.name for alias in node.names} & modules


def test_no_module_needs_itself_to_be_ready():
    paths = {
        ".".join(["certeq", *path.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__"): path
        for path in ROOT.rglob("*.py")
    }
    needs = {name: set(imported_at_once(path, set(paths))) - {name} for name, path in paths.items()}
    assert sum(map(len, needs.values())) > 300
    order = list(TopologicalSorter(needs).static_order())  # raises where there is a circle, and names it
    assert order.index("certeq.base.errors") < order.index("certeq.model.kernel") < order.index("certeq.cli")


def test_importing_certeq_loads_nothing_heavy():
    code = f"import sys, certeq; print(*[name for name in {HEAVY!r} if name in sys.modules])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []


@pytest.mark.parametrize("name", certeq.__all__)
def test_every_public_name_resolves(name):
    assert getattr(certeq, name) is not None
    assert name in dir(certeq)


def test_an_unknown_public_name_is_an_ordinary_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'plans'"):
        certeq.plans  # noqa: B018
