"""All that this package uses of Numba and Numba does not document: it changes from version to version.

Other modules import these names from here, and from Numba itself only ``numba``, ``numba.types`` and
``numba.extending``. Each use is an assumption that ``tests/test_numba_internals.py`` tests, and :data:`TESTED` says for
which versions that was done: others are refused at import.

The larger part is how compiled functions that call many others are optimised once, as a whole. Numba by itself
optimises every function together with all that it calls and makes machine code of it, then does the same again for each
of its callers, up to the one that Python calls. In a program of hundreds of small functions most of the time goes into
code that nobody runs. Here a function that compiled functions call stops at LLVM's intermediate code
(:class:`PartDispatcher`). The one that Python calls links the parts, each once, and optimises and translates them
together (:class:`WholeCompiler`).
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

import numba
from numba import types

TESTED: Final = ((0, 68), (0, 69))
"""Versions of Numba from the first on and before the second, as in ``pyproject.toml``."""


def check_version(version: str) -> None:
    """Refuse a version of Numba that this module was not tested with.

    Raises:
        ImportError: it is another.
    """
    least, below = TESTED
    if not least <= tuple(int(part) for part in version.split(".")[:2]) < below:
        wanted = f"numba>={least[0]}.{least[1]},<{below[0]}.{below[1]}"
        raise ImportError(
            f"numba {version} is installed, and gpusched_env extends the compiler of {wanted}: pip install '{wanted}'"
        )


check_version(numba.__version__)

# After the check, as these names may be missing elsewhere.
from numba.core import cgutils as cgutils
from numba.core import event as event
from numba.core.caching import _Cache, _CacheLocator
from numba.core.ccallback import CFunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import PassManager, _pass_registry, register_pass
from numba.core.postproc import PostProcessor
from numba.core.registry import CPUDispatcher, cpu_target
from numba.core.serialize import dumps
from numba.core.sigutils import normalize_signature
from numba.core.transforms import canonicalize_cfg
from numba.core.typed_passes import NativeLowering
from numba.core.typing.templates import make_concrete_template
from numba.misc.appdirs import AppDirs
from numba.np.arrayobj import make_array, populate_array


class PartLibrary(JITCodeLibrary):
    """The code of one function that others call, without that of what it calls itself."""

    _with_callees: Any = None

    def _optimize_functions(self, ll_module: Any) -> None:
        """Not yet: the whole is optimised with all that its parts say to each other."""
        ll_module.data_layout = self._codegen._data_layout

    def finalize(self) -> None:
        """Nothing may be added any more; there is nothing to optimise yet."""
        self._finalized = True

    def own_module(self) -> Any:
        """The function's own code, to be linked into that of several others."""
        return super()._get_module_for_linking()

    def _get_module_for_linking(self) -> Any:
        """The code for a caller that was compiled by Numba's own rules: with all that the function calls."""
        if self._with_callees is None:
            module, *callees = [_module(library) for library in _everything([self])]
            module = module.clone()
            for callee in callees:
                module.link_in(callee, preserve=True)
            self._with_callees = module
        return self._with_callees


class WholeLibrary(JITCodeLibrary):
    """The code of a function that Python calls and of all that it calls."""

    def finalize(self) -> None:
        """Link, optimise and translate."""
        self._linking_libraries = [_Linked(library) for library in _everything(self._linking_libraries)]
        super().finalize()

    def _optimize_final_module(self) -> None:
        """Nobody else calls the parts: LLVM makes one that has a single caller part of it, whatever its size."""
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage.name == "linkonce_odr":
                function.linkage = "internal"
        # Numba's first round is for reference counting, of which there is none to speak of.
        passes, builder = self._codegen._module_pass_manager()
        passes.run(self._final_module, builder)


class _Linked:
    """A library as :class:`WholeLibrary` links it: of a part its own code."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self._reload_init = library._reload_init

    def _get_module_for_linking(self) -> Any:
        return _module(self._library)


def _module(library: Any) -> Any:
    return library.own_module() if isinstance(library, PartLibrary) else library._get_module_for_linking()


def _everything(libraries: Iterable[Any]) -> list[Any]:
    """Libraries and, of parts, the libraries that they need, each once and callers before what they call.

    LLVM's linker drops what nothing refers to that was linked before.
    """
    ended: dict[Any, None] = {}

    def visit(library: Any) -> None:
        if library not in ended:
            for called in library._linking_libraries if isinstance(library, PartLibrary) else ():
                visit(called)
            ended[library] = None

    for library in libraries:
        visit(library)
    return [*reversed(ended)]


class _Flags(Flags):
    """A function's own flags."""

    def copy(self) -> Any:
        """What the functions that it calls see of them, and inherit: the same from each caller.

        Numba compiles a law once for each set of flags that it finds at its callers.
        """
        shown: Any = Flags()
        shown.nrt = self.nrt
        shown.error_model = self.error_model
        shown.fastmath = self.fastmath
        shown.boundscheck = self.boundscheck
        return shown


class _OwnLibrary(Compiler):
    """Numba's compiler with another class of libraries."""

    library: Any

    def _compile_core(self) -> Any:
        state = self.state
        state.flags = _Flags(state.flags)
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        return super()._compile_core()


class WholeCompiler(_OwnLibrary):
    """The compiler of functions that Python calls."""

    library = WholeLibrary


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):
    """Lowering without machine code."""

    _name = "part_lowering"

    def run_pass(self, state: Any) -> bool:
        """Lower a function to LLVM's intermediate code, which compiled callers find."""
        state.flags.no_compile = True
        super().run_pass(state)
        lowered = state["cr"]
        fndesc = lowered.fndesc
        # Numba finds the code by an object that is a function of C. This one raises an error that says what is wrong.
        key = f"{{{fndesc.qualname} is for compiled functions only}}".format
        state.targetctx.insert_user_function(key, fndesc, [state.library])
        state.reload_init.extend(state.library._reload_init)
        state["cr"] = lowered._replace(cfunc=key)
        return True


class _Steps(PassManager):
    """Numba's steps, without what it writes about each for listeners and into timers: a tenth of a build's time."""

    passes: list[tuple[Any, str]]

    def _runPass(self, index: int, pss: Any, internal_state: Any) -> None:
        pss.analysis = self._analysis
        has_changed = pss.run_initialization(internal_state)
        has_changed |= pss.run_pass(internal_state)
        has_changed |= pss.run_finalizer(internal_state)
        if _pass_registry.get(type(pss)).mutates_CFG:
            if has_changed:
                PostProcessor(internal_state.func_ir).run()
            else:
                internal_state.func_ir.blocks = canonicalize_cfg(internal_state.func_ir.blocks)


class PartCompiler(_OwnLibrary):
    """The compiler of functions that only compiled functions call."""

    library = PartLibrary

    def define_pipelines(self) -> list[Any]:
        """The steps of Numba's own compiler, but for the last one."""
        steps = _Steps("parts")
        for step, text in DefaultPassBuilder.define_nopython_pipeline(self.state).passes:
            steps.add_pass(PartLowering if step is NativeLowering else step, text)
        steps.finalize()
        return [steps]


class PartDispatcher(CPUDispatcher):
    """A function that compiled functions call; Python runs its text.

    It is compiled once for arguments that differ only in the width of integers, or in being known beforehand.
    """

    _compiler: Any
    overloads: Any

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        """``options``: of ``njit``."""
        target = {"nopython": True, "boundscheck": None, **options}
        super().__init__(function, {}, target, PartCompiler)

    def __call__(self, *arguments: Any) -> Any:
        return self.py_func(*arguments)

    def get_call_template(self, args: Any, kws: Any) -> Any:
        """How a compiled caller calls it, for which it is compiled now, unless it was before."""
        signature, args = self._compiler.fold_argument_types(args, kws)
        args = tuple(map(_widened, args))
        if args not in self.overloads:
            # Without what Numba's own does besides: its locks are held, its timers are as many as there are callers.
            self.add_overload(self._compiler.compile(args, None))
        name = self.py_func.__name__
        template = make_concrete_template(name, key=name, signatures=[self.overloads[args].signature])
        return template, signature, args, {}


def _widened(kind: Any) -> Any:
    kind = types.unliteral(kind)
    if kind in types.signed_domain:
        return types.int64
    if isinstance(kind, types.UniTuple):
        return types.UniTuple(_widened(kind.dtype), kind.count)
    if isinstance(kind, types.Tuple):
        return types.Tuple([_widened(each) for each in kind])
    return kind


def compile_as(function: Callable[..., Any], other: Any) -> None:
    """Compile calls of a function of Python as calls of another, wherever compiled functions name it.

    Args:
        other: a part, or what compiled functions can call besides.
    """
    _HELD.append(other)
    context = cpu_target.typing_context
    context.insert_global(function, context.resolve_value_type(other))


_HELD: Final[list[Any]] = []
"""Numba holds dispatchers weakly."""


# ------------------------------------------------------------------------------------------ what is kept on disk


class FunctionCache(_Cache):
    """What Numba asks of the cache of a function, besides ``load_overload`` and ``save_overload``."""

    @property
    def cache_path(self) -> str:
        """The folder that is tried first."""
        raise NotImplementedError

    def enable(self) -> None:
        """Nothing to do: the cache is always enabled."""

    disable = flush = enable


def keep_in(compiled: Any, cache: FunctionCache, compile_: Callable[..., Any]) -> None:
    """Let a compiled function look in a cache, and compile by ``compile_``."""
    compiled._cache = cache
    compiled.compile = compile_


def callback(function: Callable[..., Any], signature: Any) -> Any:
    """A function for C that is not compiled yet, of which the code is linked as a whole."""
    return CFunc(function, normalize_signature(signature), {}, {}, pipeline_class=WholeCompiler)


def holds_addresses(compiled: Any) -> bool:
    """Whether what was compiled is for this process only."""
    return bool(compiled.library.has_dynamic_globals)


def as_bytes(compiled: Any) -> bytes:
    """What was compiled, for :func:`from_bytes`."""
    return bytes(dumps(compiled._reduce()))


def from_bytes(target_context: Any, content: bytes) -> Any:
    """What was compiled, in this or another process. Unpickling runs what is in ``content``."""
    return CompileResult._rebuild(target_context, *pickle.loads(content))


def types_key(signature: Any, codegen: Any, *others: Any) -> bytes:
    """The types of a function's arguments, the version of Numba, the processor and ``others``, as bytes of a key."""
    of_types = repr((tuple(getattr(signature, "args", signature)), getattr(signature, "return_type", None)))
    return bytes(dumps((of_types, numba.__version__, codegen.magic_tuple(), others)))


def cache_folders(source: Path) -> tuple[Path, Path]:
    """Where Numba keeps functions of ``source`` below a folder that it is given, and at a user's home."""
    below: str = _CacheLocator.get_suitable_cache_subpath(str(source))
    return Path(below), Path(AppDirs(appname="numba", appauthor=False).user_cache_dir) / below


# ---------------------------------------------------------------------------------------------- records in memory


def size_of(kind: types.Type) -> int:
    """Bytes that a value of a type takes in memory."""
    context: Any = cpu_target.target_context
    return int(context.get_abi_sizeof(context.get_data_type(kind)))


def array_at(context: Any, builder: Any, array: types.Array, data: Any, count: Any, stride: Any, itemsize: Any) -> Any:
    """The value of an ``array`` type of one dimension, of ``count`` items at ``data``; nobody owns their memory."""
    made = make_array(array)(context, builder)
    populate_array(made, data=data, shape=[count], strides=[stride], itemsize=itemsize, meminfo=None)
    return made._getvalue()
