"""Lanes: eight float64 numbers in one vector register, one for each of eight MDPs.

A loop over MDPs whose body is plain arithmetic could be vectorized by the compiler, but it is not: it picks the wrong
loop. Here the eight MDPs side by side *are* the number type, so the code of a planner reads as if for one MDP and LLVM
has nothing to guess. Where the machine has shorter registers, LLVM splits the vectors.

An array of lanes is an ordinary float64 array whose last axis has length 8; ``load(array, i)`` reads the i-th group of
eight of the flattened array, ``store(array, i, lanes)`` writes it.
"""

from __future__ import annotations

import operator
from typing import Any

from certeq.base.compiling import njit  # isort: skip - before Numba

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic as _intrinsic
from numba.extending import lower_builtin, models, register_model, type_callable

WIDTH = 8
_lean = njit(cache=True, lean=True, nogil=True)
intrinsic: Any = _intrinsic  # Numba's own annotation does not know that it takes the typing context away
_VECTOR = ir.VectorType(ir.DoubleType(), WIDTH)
_WHOLE = ir.VectorType(ir.IntType(64), WIDTH)


class LanesType(types.Type):
    """The Numba type of eight float64 lanes."""

    def __init__(self) -> None:
        super().__init__(name="Lanes8")


LANES = LanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm: Any, fe_type: Any) -> None:
        super().__init__(dmm, fe_type, _VECTOR)


def _arithmetic(function: Any, instruction: str) -> None:
    """Teach Numba one operator between lanes: element by element, each rounded by itself."""

    @type_callable(function)
    def typer(context: Any) -> Any:
        return lambda a, b: LANES if isinstance(a, LanesType) and isinstance(b, LanesType) else None

    @lower_builtin(function, LanesType, LanesType)
    def lower(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return getattr(builder, instruction)(*arguments)


for _function, _instruction in (
    (operator.add, "fadd"),
    (operator.sub, "fsub"),
    (operator.mul, "fmul"),
    (operator.truediv, "fdiv"),
):
    _arithmetic(_function, _instruction)


def _pointer(context: Any, builder: Any, array_type: Any, array: Any, index: Any) -> Any:
    data = context.make_array(array_type)(context, builder, array).data
    offset = builder.mul(index, ir.Constant(index.type, WIDTH))
    return builder.bitcast(builder.gep(data, [offset]), _VECTOR.as_pointer())


@intrinsic
def load(typing: Any, array: Any, index: Any) -> Any:
    """``load(array, i)``: lanes ``i * 8 .. i * 8 + 7`` of a contiguous float64 array."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        return builder.load(pointer, align=8)

    return LANES(array, types.intp), code


@intrinsic
def store(typing: Any, array: Any, index: Any, lanes: Any) -> Any:
    """``store(array, i, lanes)``: write lanes ``i * 8 .. i * 8 + 7``."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        pointer = _pointer(context, builder, signature.args[0], arguments[0], arguments[1])
        builder.store(arguments[2], pointer, align=8)
        return context.get_dummy_value()

    return types.none(array, types.intp, LANES), code


@intrinsic
def fill(typing: Any, number: Any) -> Any:
    """``fill(x)``: the same number in all lanes."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        lanes = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), arguments[0], ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), [0] * WIDTH)
        return builder.shuffle_vector(lanes, ir.Constant(_VECTOR, ir.Undefined), zeros)

    return LANES(types.float64), code


def _fused(negated: bool, doc: str) -> Any:
    """Make ``f(c, a, b)``: c plus or minus a times b, in one rounding where the machine can.

    It is written out which product goes with which sum. Were the compiler free to choose, ``a * b + c * d`` would be
    rounded one way in a process that compiles and another way in one that has the same kernel from the cache.
    """

    def fuse(typing: Any, c: Any, a: Any, b: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            kind = ir.FunctionType(_VECTOR, [_VECTOR] * 3)
            function = cgutils.get_or_insert_function(builder.module, kind, f"llvm.fmuladd.v{WIDTH}f64")
            c, a, b = arguments
            return builder.call(function, [builder.fneg(a) if negated else a, b, c])

        return LANES(LANES, LANES, LANES), code

    fuse.__doc__ = doc
    return intrinsic(fuse)


plus = _fused(False, "``plus(c, a, b)``: c + a·b.")
minus = _fused(True, "``minus(c, a, b)``: c - a·b.")


def _choice(comparison: str, doc: str) -> Any:
    """Make ``f(a, b, x, y)``: x in the lanes where the comparison of a and b holds, y elsewhere."""

    def choose(typing: Any, a: Any, b: Any, x: Any, y: Any) -> Any:
        def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            return builder.select(builder.fcmp_ordered(comparison, *arguments[:2]), *arguments[2:])

        return LANES(LANES, LANES, LANES, LANES), code

    choose.__doc__ = doc
    return intrinsic(choose)


where_greater = _choice(">", "``where_greater(a, b, x, y)``: x where a > b, else y.")
where_equal = _choice("==", "``where_equal(a, b, x, y)``: x where a == b, else y.")


@intrinsic
def largest(typing: Any, lanes: Any) -> Any:
    """``largest(lanes)``: the greatest of the eight, a float."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = [builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), i)) for i in range(WIDTH)]
        top = at[0]
        for other in at[1:]:
            top = builder.select(builder.fcmp_ordered(">", other, top), other, top)
        return top

    return types.float64(LANES), code


@intrinsic
def anywhere(typing: Any, lanes: Any) -> Any:
    """``anywhere(lanes)``: whether any of the eight is not zero."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        there = builder.fcmp_unordered("!=", arguments[0], ir.Constant(_VECTOR, [0.0] * WIDTH))
        bits = builder.bitcast(there, ir.IntType(WIDTH))
        return builder.icmp_unsigned("!=", bits, ir.Constant(bits.type, 0))

    return types.boolean(LANES), code


@intrinsic
def total(typing: Any, lanes: Any) -> Any:
    """``total(lanes)``: the sum of the eight, neighbors first, a float."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        at = [builder.extract_element(arguments[0], ir.Constant(ir.IntType(32), i)) for i in range(WIDTH)]
        while len(at) > 1:
            at = [builder.fadd(one, other) for one, other in zip(at[::2], at[1::2], strict=True)]
        return at[0]

    return types.float64(LANES), code


@njit(cache=True, nogil=True)
def dot(x: Any, y: Any) -> float:
    """``x · y``, both contiguous, always in the same order.

    (A plain loop that the compiler may reorder is as fast, but it does so differently from one compilation to the next:
    a process that compiles a kernel and one that has it from the cache would differ in the last digits.)
    """
    a, b, c, d, blocks = fill(0.0), fill(0.0), fill(0.0), fill(0.0), x.size // WIDTH
    fours = blocks - blocks % 4
    for i in range(0, fours, 4):
        a = plus(a, load(x, i), load(y, i))
        b = plus(b, load(x, i + 1), load(y, i + 1))
        c = plus(c, load(x, i + 2), load(y, i + 2))
        d = plus(d, load(x, i + 3), load(y, i + 3))
    for i in range(fours, blocks):
        a = plus(a, load(x, i), load(y, i))
    sum_ = total((a + b) + (c + d))
    for i in range(blocks * WIDTH, x.size):
        sum_ += x[i] * y[i]
    return sum_


@njit(cache=True, nogil=True)
def add_up(x: Any) -> float:
    """The sum of contiguous numbers, always in the same order."""
    lanes, blocks = fill(0.0), x.size // WIDTH
    for i in range(blocks):
        lanes = lanes + load(x, i)
    sum_ = total(lanes)
    for i in range(blocks * WIDTH, x.size):
        sum_ += x[i]
    return sum_


@intrinsic
def as_written(typing: Any) -> Any:
    """``as_written()``: leave the loop in which this stands as it is.

    The compiler would unroll it several times over, with further loops for what is left, and where there are ten states
    or two actions, choosing among these takes as long as the work. It may not copy what `convergent` says not to.
    """

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        nothing = builder.asm(ir.FunctionType(ir.VoidType(), []), "", "", [], True)
        nothing.attributes.add("convergent")
        return context.get_dummy_value()

    return types.none(), code


@_lean
def larger(a: Any, b: Any) -> Any:
    """``larger(a, b)``: lane by lane, the larger one."""
    return where_greater(a, b, a, b)


@_lean
def smaller(a: Any, b: Any) -> Any:
    """``smaller(a, b)``: lane by lane, the smaller one."""
    return where_greater(b, a, a, b)


@njit(cache=True, nogil=True)
def room(n: int) -> Any:
    """Room for n groups of lanes, at a multiple of 64 bytes: a register read across cache lines costs two reads."""
    space = np.empty((n + 1) * WIDTH)
    skip = -(space.ctypes.data // space.itemsize) % WIDTH
    return space[skip : skip + n * WIDTH]


@intrinsic
def _turn(typing: Any, source: Any, of: Any, column: Any, out: Any, at: Any) -> Any:
    """Read eight columns of eight lines, floats or whole numbers, and write them turned: each line becomes a lane."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, of, column, out, at = arguments
        place = builder.add(at, column)
        lines = []
        for lane in range(WIDTH):
            pointer, whole = _part(context, builder, signature.args[:2], (source, of), column, lane)
            line = builder.load(pointer, align=8)
            lines.append(builder.sitofp(line, _VECTOR) if whole else line)
        for i, line in enumerate(_turned(builder, lines)):
            index = builder.add(place, ir.Constant(place.type, i))
            builder.store(line, _pointer(context, builder, signature.args[3], out, index), align=8)
        return context.get_dummy_value()

    return types.none(source, of, types.intp, out, types.intp), code


@intrinsic
def _turn_back(typing: Any, source: Any, at: Any, out: Any, of: Any, column: Any) -> Any:
    """Read eight groups of lanes and write them turned into eight columns of eight lines, floats or whole numbers."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        source, at, out, of, column = arguments
        place = builder.add(at, column)
        groups = []
        for i in range(WIDTH):
            index = builder.add(place, ir.Constant(place.type, i))
            groups.append(builder.load(_pointer(context, builder, signature.args[0], source, index), align=8))
        for lane, line in enumerate(_turned(builder, groups)):
            pointer, whole = _part(context, builder, signature.args[2:4], (out, of), column, lane)
            builder.store(builder.fptosi(line, _WHOLE) if whole else line, pointer, align=8)
        return context.get_dummy_value()

    return types.none(source, types.intp, out, of, types.intp), code


def _part(context: Any, builder: Any, kinds: Any, arrays: Any, column: Any, lane: int) -> tuple[Any, bool]:
    """Where the eight columns of a lane's line are, and whether they hold whole numbers."""
    table = context.make_array(kinds[0])(context, builder, arrays[0])
    numbers = context.make_array(kinds[1])(context, builder, arrays[1]).data
    whole = isinstance(kinds[0].dtype, types.Integer)
    number = builder.load(builder.gep(numbers, [ir.Constant(column.type, lane)]))
    start = builder.add(builder.mul(number, builder.extract_value(table.shape, 1)), column)
    pointer = builder.gep(table.data, [start])
    return builder.bitcast(pointer, (_WHOLE if whole else _VECTOR).as_pointer()), whole


def _turned(builder: Any, lines: list[Any]) -> list[Any]:
    """Turn an 8 x 8 block by exchanging halves in three rounds."""
    for half in (1, 2, 4):
        turned = list(lines)
        for i in range(WIDTH):
            if i & half:
                continue
            low, high = lines[i], lines[i + half]
            first = [j if not j & half else j - half + WIDTH for j in range(WIDTH)]
            second = [j + half if not j & half else j + WIDTH for j in range(WIDTH)]
            turned[i] = builder.shuffle_vector(low, high, _mask(first))
            turned[i + half] = builder.shuffle_vector(low, high, _mask(second))
        lines = turned
    return lines


def _mask(positions: list[int]) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), WIDTH), positions)


@intrinsic
def _prefetch(typing: Any, array: Any, index: Any) -> Any:
    """Ask for the cache line of a number, to have it in the second-level cache a little later."""

    def code(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, arguments[0]).data
        ask = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        function = cgutils.get_or_insert_function(builder.module, ask, "llvm.prefetch.p0")
        to_read, second_level, of_data = (ir.Constant(number, choice) for choice in (0, 2, 1))
        pointer = builder.bitcast(builder.gep(data, [arguments[1]]), byte)
        builder.call(function, [pointer, to_read, second_level, of_data])
        return context.get_dummy_value()

    return types.none(array, types.intp), code


@_lean
def prefetch(source: Any, line: int) -> None:
    """Ask for a line of ``source`` (n, m) ahead of time. Not for many at once: requests would queue up."""
    m = source.shape[1]
    for column in range(0, m, WIDTH):
        _prefetch(source, line * m + column)


@_lean
def gather(source: Any, of: Any, out: Any, at: int) -> None:
    """Put line ``of[l]`` of ``source`` (n, m) into lane l of the m groups of ``out`` that begin with number ``at``."""
    m = source.shape[1]
    if m < WIDTH:
        for lane in range(WIDTH):
            for column in range(m):
                out[(at + column) * WIDTH + lane] = source[of[lane], column]
        return
    for column in range(0, m - WIDTH, WIDTH):
        _turn(source, of, column, out, at)
    _turn(source, of, m - WIDTH, out, at)  # may write some columns once more


@_lean
def scatter(source: Any, at: int, of: Any, out: Any) -> None:
    """Put lane l of the m groups of ``source`` that begin with number ``at`` into line ``of[l]`` of ``out`` (n, m)."""
    m = out.shape[1]
    if m < WIDTH:
        for lane in range(WIDTH):
            for column in range(m):
                out[of[lane], column] = source[(at + column) * WIDTH + lane]
        return
    for column in range(0, m - WIDTH, WIDTH):
        _turn_back(source, at, out, of, column)
    _turn_back(source, at, out, of, m - WIDTH)  # may write some columns once more
