"""Compiling kernels with Numba, and keeping them where nobody else can write.

Numba keeps compiled kernels as pickles, which are code: whoever can write them runs what they like as whoever reads
them. So they are kept beside the package if that is this user's alone, else in a place of this user's own, else not at
all, which one line tells. Each file carries a checksum: what is damaged is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import logging
import os
import pickle
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from certeq.base import ahead
from certeq.base.errors import InputError
from certeq.base.manners import own
from certeq.base.private import mine, private

CONFIG = ".numba_config.yaml"  # which Numba reads wherever it is started, and which can name a folder of kernels
WAIT = 0.05  # seconds until it is looked again for a kernel that another process compiles
PATIENCE = 120  # seconds in all; after that it is compiled here as well
SUM = hashlib.sha256().digest_size
if "numba" not in sys.modules and Path(CONFIG).exists():
    raise InputError(
        f"There is a file {CONFIG} in this folder, which lets whoever made it decide how certeq compiles and what "
        "it loads. Run certeq from another folder, or remove the file."
    )

_yaml = sys.modules.setdefault("yaml", None)  # type: ignore[arg-type] # only for such a file, and slow to load
import llvmlite.binding as llvm  # noqa: E402 - not before that is known
import numba  # noqa: E402
from numba.core import caching, config, entrypoints, environment  # noqa: E402
from numba.core.runtime import nrtdynmod  # noqa: E402
from numba.core.runtime.nrt import rtsys  # noqa: E402

if _yaml is None:
    del sys.modules["yaml"]
if own():
    entrypoints._already_initialized = (
        True  # others' extensions are not for kernels, and all packages are looked through
    )
if getattr(config, "DISABLE_JIT", False):
    raise InputError("NUMBA_DISABLE_JIT is set, and certeq's kernels need their compiler. Unset it.")
if "_config_fname" in vars(config):
    config._config_fname = os.devnull  # nor later, whenever something is compiled


def njit(*, cache: bool = False, inner: bool = False, lean: bool = False, **options: Any) -> Callable[[Any], Any]:
    """Compile a function as `numba.njit` does; with ``cache``, keep what was compiled in a safe place.

    An ``inner`` function is called by other kernels only. It needs no way in from Python, which for arguments of many
    arrays is more code than the function itself, and is kept within those who call it. A ``lean`` one makes no arrays.
    So it need not count who holds those that it is given, which would take longer than many a small function itself.
    """
    if inner:
        options |= {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    if lean:
        options |= {"_nrt": False}
    compile_ = numba.njit(**options)

    def compiled(function: Any) -> Any:
        dispatcher = compile_(function)
        if cache:
            kept = _kept(function)
            if kept is not None:
                dispatcher._cache = kept
        return dispatcher

    return compiled


def _kept(function: Any) -> Kept | None:
    """Where this kernel is kept; None where there is no place for it."""
    folder = _folder(Path(function.__code__.co_filename).parent)
    return None if folder is None else Kept(function, folder)


@cache
def _folder(package: Path) -> Path | None:
    """A folder for the kernels of a folder of the package: its own if it is this user's alone, or one elsewhere."""
    said = os.environ.get("NUMBA_CACHE_DIR", "")
    beside = Path(said) if said else package / "__pycache__"
    with contextlib.suppress(OSError):
        beside.mkdir(exist_ok=True, parents=bool(said))
        if mine(beside) and os.access(beside, os.W_OK):
            return beside / _mark(package) if said else beside
    elsewhere = private("kernels")
    if elsewhere is None:
        _notice(
            "There is no private folder to keep compiled kernels in, so they are compiled each time, which takes a "
            "minute. Name a folder for them with XDG_STATE_HOME."
        )
        return None
    return elsewhere / _mark(package)


def _mark(package: Path) -> str:
    return f"{package.name}-{hashlib.sha256(os.fsencode(package)).hexdigest()[:16]}"


@cache
def _notice(said: str) -> None:
    logging.getLogger("certeq").warning(said)


class _Locator(caching._SourceFileBackedLocatorMixin, caching._CacheLocator):
    """Numba's way to ask where the kernels of a file are."""

    def __init__(self, function: Any, folder: Path) -> None:
        self._py_file, self._lineno = function.__code__.co_filename, function.__code__.co_firstlineno
        self._folder = folder

    def get_cache_path(self) -> str:
        """The folder."""
        return str(self._folder)


class _KernelFile(caching.IndexDataCacheFile):
    """Files that begin with the checksum of what follows, which is compared before anything is unpickled."""

    def _dump(self, obj: Any) -> bytes:
        data: bytes = super()._dump(obj)
        return hashlib.sha256(data).digest() + data

    def _load_index(self) -> Any:
        try:
            stamp, version, kernels = self._checked(Path(self._index_path))
        except FileNotFoundError:
            return {}
        return kernels if (stamp, version) == (self._source_stamp, self._version) else {}

    def _save_index(self, overloads: Any) -> None:
        with self._open_for_write(self._index_path) as file:
            file.write(self._dump((self._source_stamp, self._version, overloads)))

    def _load_data(self, name: str) -> Any:
        return self._checked(Path(self._data_path(name)))

    @staticmethod
    def _checked(path: Path) -> Any:
        data = path.read_bytes()
        if hashlib.sha256(data[SUM:]).digest() != data[:SUM]:
            raise ValueError("damaged")
        return _Unpickler(io.BytesIO(data[SUM:])).load()  # written by this user, where nobody else can write


class _Unpickler(pickle.Unpickler):
    """Reads a kernel without loading those parts of Numba that only its compiler needs."""

    def find_class(self, module: str, name: str) -> Any:
        """What a pickle names."""
        return _environment if name == "_rebuild_env" else super().find_class(module, name)


def _environment(module: str, constants: list[Any], name: str) -> Any:
    """What a function within a kernel may look up while it runs: where it holds no Python objects, nothing."""
    if constants or environment.lookup_environment(name) is not None:
        return environment._rebuild_env(module, constants, name)
    made = environment.Environment({"__name__": module})
    made.env_name = name
    environment.Environment._memo[name] = made
    return made


class Kept(caching.FunctionCache):
    """Compiled kernels of one function, on disk; whatever is wrong with the disk, they are compiled instead."""

    def __init__(self, function: Any, folder: Path) -> None:
        self._name, self._py_func = repr(function), function
        self._impl = _Impl(function, folder)
        self._cache_path = str(folder)
        self._cache_file = _KernelFile(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )
        self.enable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """A kernel that was kept, or None: to be compiled. One that another process is about to keep is waited for."""
        try:
            until = time.monotonic() + PATIENCE
            while time.monotonic() < until and ahead.expected(self._py_func) and not self._there(sig, target_context):
                time.sleep(WAIT)
            _begin(target_context)  # what more Numba would load, a third of a second, is for compiling
            return self._load_overload(sig, target_context)
        except Exception:
            with contextlib.suppress(OSError):
                Path(self._cache_file._index_path).unlink()
            return None

    def _there(self, sig: Any, target_context: Any) -> bool:
        return self._cache_file.load(self._index_key(sig, target_context.codegen())) is not None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel, if there is room."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            self.disable()
            _notice(f"Compiled kernels cannot be kept in {self._cache_path}: {getattr(error, 'strerror', error)}.")


def _begin(context: Any) -> None:
    """Begin Numba's runtime, whose few functions are kept too: it would compile them anew in every process."""
    usual = nrtdynmod.compile_nrt_functions
    nrtdynmod.compile_nrt_functions = _runtime
    try:
        rtsys.initialize(context)
    finally:
        nrtdynmod.compile_nrt_functions = usual


def _runtime(context: Any) -> Any:
    """The functions of the runtime: kept ones, or compiled as Numba compiles them."""
    codegen, folder = context.codegen(), _folder(Path(__file__).parent)
    name = f"runtime.{sys.implementation.cache_tag}"
    file = None if folder is None else _KernelFile(str(folder), name, llvm.llvm_version_info)
    with contextlib.suppress(Exception):  # damaged, or of a Numba that keeps it otherwise
        kept = None if file is None else file.load(codegen.magic_tuple())
        if kept is not None:
            return codegen.unserialize_library(kept)
    code, library = nrtdynmod.create_nrt_module(context)
    library.enable_object_caching()
    library.add_ir_module(code)
    library.finalize()
    if file is not None and folder is not None:
        with contextlib.suppress(Exception):  # no room
            folder.mkdir(parents=True, exist_ok=True)
            file.save(codegen.magic_tuple(), library.serialize_using_object_code())
    return library


class _Impl(caching.CompileResultCacheImpl):
    """How Numba packs a kernel; only the place is ours."""

    def __init__(self, function: Any, folder: Path) -> None:
        self._lineno = function.__code__.co_firstlineno
        self._locator = _Locator(function, folder)
        module = Path(function.__code__.co_filename).stem
        self._filename_base = self.get_filename_base(f"{module}.{function.__qualname__}", sys.abiflags)

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """A kernel that was kept; what only who links another one with it needs is read when somebody does."""
        (name, kind, data), about, *rest = payload
        if kind != "object":
            return super().rebuild(target_context, payload)
        engine = target_context.codegen()._engine
        engine._defined_symbols |= {about.llvm_func_name, about.llvm_cpython_wrapper_name}
        found = super().rebuild(target_context, ((name, kind, (data[0], _nothing())), about, *rest))
        found.library._shared_module = None

        def linked() -> Any:
            if found.library._shared_module is None:
                found.library._shared_module = llvm.parse_bitcode(data[1])
                engine._load_defined_symbols(found.library._shared_module)
            return found.library._shared_module

        found.library._get_module_for_linking = linked
        return found


@cache
def _nothing() -> bytes:
    """The bitcode of a module without anything in it."""
    bitcode: bytes = llvm.parse_assembly("").as_bitcode()
    return bitcode
