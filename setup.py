"""Builds the extension modules; everything else about the package is in pyproject.toml.

A module is compiled if a ``.pxd`` lies beside it, if it is a ``.pyx``, or if it is named in
COMPILED_WITHOUT_PXD. A ``.pyx`` may have a ``.py`` of the same name: the fallback that an
uncompiled installation imports. Either every module is compiled or none is, because compiled
modules use each other's C structures. Those that the import of the package needs are linked into
one shared library, which is opened faster than many; src/wengert/core/loading.py names them.
"""

import os
import runpy
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

SOURCE = Path("src")
PACKAGE = SOURCE / "wengert"
COMPILED_WITHOUT_PXD = [
    "wengert/autograd/function_outputs.py",
    "wengert/autograd/grad_mode.py",
    "wengert/backends/geometry.py",
    "wengert/compiler/ir/blocks.py",
    "wengert/compiler/ir/graph.py",
    "wengert/compiler/ir/nodes.py",
    "wengert/compiler/ir/primitives.py",
    "wengert/compiler/ir/types.py",
    "wengert/compiler/passes/dce.py",
    "wengert/compiler/passes/raising.py",
    "wengert/compiler/passes/reroll.py",
    "wengert/compiler/passes/slices.py",
    "wengert/compiler/trace/level.py",
    "wengert/compiler/trace/refusals.py",
    "wengert/compiler/trace/shapes.py",
    "wengert/core/arrays.py",
    "wengert/core/scopes.py",
    "wengert/creation/declare.py",
    "wengert/creation/sampling.py",
    "wengert/dispatch/overlap.py",
    "wengert/operators/affine.py",
    "wengert/operators/along.py",
    "wengert/operators/arithmetic.py",
    "wengert/operators/comparison.py",
    "wengert/operators/copying.py",
    "wengert/operators/declare.py",
    "wengert/operators/fitting.py",
    "wengert/operators/getitem.py",
    "wengert/operators/joining.py",
    "wengert/operators/logic.py",
    "wengert/operators/losses.py",
    "wengert/operators/products.py",
    "wengert/operators/reduce.py",
    "wengert/operators/selection.py",
    "wengert/operators/softmax.py",
    "wengert/operators/transcendental.py",
    "wengert/operators/views.py",
    "wengert/optim/rule.py",
    "wengert/optim/together.py",
    "wengert/tensor/attributes.py",
    "wengert/transforms/batching/copies.py",
    "wengert/transforms/batching/moving.py",
    "wengert/transforms/batching/products.py",
    "wengert/transforms/batching/rules.py",
    "wengert/transforms/batching/views.py",
    "wengert/transforms/batching/writing.py",
    "wengert/transforms/levels.py",
]

DIRECTIVES = {
    "language_level": 3,
    "cdivision": True,
    "annotation_typing": False,
    "binding": True,
    "embedsignature": False,
}
MACROS = [
    ("NPY_NO_DEPRECATED_API", "NPY_2_0_API_VERSION"),
    ("NPY_TARGET_VERSION", "NPY_2_0_API_VERSION"),
    ("CYTHON_COMPRESS_STRINGS", "0"),  # unpacking them would slow down the import
]
# Only what is written in C types throughout gains from -O3; the rest is calls of the Python API.
UNIX_FLAGS = {True: ["-O3", "-fno-math-errno", "-g0"], False: ["-O1", "-g0"]}
# Errors of newer compilers, which older ones would only warn of: whatever builds here builds there.
UNIX_ERRORS = [
    "-Werror=implicit-function-declaration",
    "-Werror=incompatible-pointer-types",
    "-Werror=int-conversion",
]
# What every recorded operation passes, whose calls of the Python API are counted in nanoseconds.
ON_THE_WAY_OF_ALL = {
    "wengert.core.state",
    "wengert.core.tensor",
    "wengert.dispatch.operator",
    "wengert.dispatch.recording",
    "wengert.tape.accumulation",
    "wengert.tape.engine",
    "wengert.tape.node",
    "wengert.tape.saved",
}
WRITTEN_IN_C_TYPES = {
    "wengert.backends.loops",
    "wengert.backends.copy_kernels",
    "wengert.backends.division_kernels",
    "wengert.backends.fourier_loops",
    "wengert.backends.gather_kernels",
    "wengert.backends.index_kernels",
    "wengert.backends.join_kernels",
    "wengert.backends.kernels",
    "wengert.backends.matrices",
    "wengert.backends.network_kernels",
    "wengert.backends.order_kernels",
    "wengert.backends.pooling_loops",
    "wengert.backends.product_kernels",
    "wengert.backends.programs",
    "wengert.backends.reduction_kernels",
    "wengert.backends.reductions",
    "wengert.backends.row_loops",
    "wengert.backends.scan_kernels",
    "wengert.backends.strips",
    "wengert.backends.systems",
    "wengert.backends.vector_loops",
    "wengert.backends.window_loops",
    "wengert.compiler.native.runtime",
    "wengert.core.classes",
    "wengert.core.collector",
    "wengert.core.frames",
    "wengert.core.memory",
    "wengert.core.ndarrays",
    "wengert.core.pool",
    "wengert.core.reuse",
    "wengert.creation.mersenne",
}
# The modules of one shared library, and its name.
TOGETHER = runpy.run_path(str(PACKAGE / "core/loading.py"))["TOGETHER"]
LIBRARY = "wengert._together"
# Loops that tools/loops.py writes into C files beside a module.
WRITTEN_LOOPS = "wengert.backends.vector_loops"
# Elementwise loops round as NumPy's do, after each operation.
ROUNDED_EACH_TIME = {"wengert.backends.loops", WRITTEN_LOOPS}
LOOP_FLAGS = ["-ffp-contract=off"]
MSVC_FLAGS = ["/O2"]
PROCESSORS = os.cpu_count() or 1


def compiled_sources() -> list[Path]:
    """The files to translate to C, in a stable order."""
    sources = set(PACKAGE.rglob("*.pyx"))
    for declaration in PACKAGE.rglob("*.pxd"):
        module = declaration.with_suffix(".py")
        belongs_to_pyx = declaration.with_suffix(".pyx").exists()
        if declaration.stem != "__init__" and module.exists() and not belongs_to_pyx:
            sources.add(module)
    sources.update(SOURCE / name for name in COMPILED_WITHOUT_PXD)
    return sorted(sources)


def extension_of(source: Path) -> Extension:
    name = ".".join(source.relative_to(SOURCE).with_suffix("").parts)
    folder = source.parent
    return Extension(
        name,
        [source.as_posix()],
        define_macros=MACROS,
        include_dirs=[folder.as_posix()],
        depends=sorted(header.as_posix() for header in folder.glob("*.h")),
    )


class BuildCompiledOrPure(build_ext):
    """Compiles all modules; where that fails, leaves them uncompiled and says so in one line."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.parallel = self.parallel or PROCESSORS

    def run(self) -> None:
        self.note_of_reason().unlink(missing_ok=True)
        reason = "no working C compiler was found"
        try:
            self.check_compiler()
            reason = "the C loops could not be written"
            self.write_loops()
            reason = "Cython could not translate the modules"
            self.translate()
            reason = "the C compiler could not compile the modules"
            super().run()
        except (Exception, SystemExit):
            if os.environ.get("WENGERT_REQUIRE_COMPILED", "0") not in ("", "0"):
                raise
            self.leave_uncompiled(reason)

    def note_of_reason(self) -> Path:
        """The module that tells an uncompiled installation why it is one."""
        return Path(self.build_lib, "wengert", "_uncompiled.py")

    def check_compiler(self) -> None:
        """Fails at once where no C compiler or no Python header is found."""
        from setuptools._distutils.ccompiler import new_compiler
        from setuptools._distutils.sysconfig import customize_compiler

        compiler = new_compiler(compiler=self.compiler)
        customize_compiler(compiler)
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder, "probe.c")
            program.write_text("#include <Python.h>\n")
            compiler.compile([str(program)], output_dir=folder, include_dirs=self.include_dirs)

    def write_loops(self) -> None:
        """Writes the C files of the loops, which `translate` adds to those of their module."""
        folder = Path(self.build_temp, "loops")
        subprocess.run([sys.executable, "tools/loops.py", str(folder)], check=True, text=True,
                       stdout=subprocess.DEVNULL)  # fmt: skip
        self.written_loops = sorted(path.as_posix() for path in folder.glob("*.c"))

    def translate(self) -> None:
        """Replaces each Python source by its C translation, made in the build folder."""
        import numpy
        from Cython.Build import cythonize

        modules = [ext for ext in self.extensions if ext.name != LIBRARY]
        print(f"translating {len(modules)} modules to C", flush=True)
        translated = cythonize(
            [Extension(ext.name, list(ext.sources)) for ext in modules],
            build_dir=str(Path(self.build_temp, "cython")),
            compiler_directives=DIRECTIVES,
            include_path=[str(SOURCE)],
            nthreads=PROCESSORS if len(modules) > 1 else 0,
            quiet=True,
        )
        sources = {ext.name: ext.sources for ext in translated}
        for ext in modules:
            ext.sources = sources[ext.name]
            ext.include_dirs = [*ext.include_dirs, numpy.get_include()]
            if ext.name == WRITTEN_LOOPS:
                ext.sources = [*ext.sources, *self.written_loops]

    def build_extensions(self) -> None:
        for ext in self.extensions:
            if self.compiler.compiler_type == "msvc":
                ext.extra_compile_args = MSVC_FLAGS
            else:
                ext.extra_compile_args = (
                    UNIX_FLAGS[ext.name in WRITTEN_IN_C_TYPES]
                    + UNIX_ERRORS
                    + (LOOP_FLAGS if ext.name in ROUNDED_EACH_TIME else [])
                )
                if ext.name in ON_THE_WAY_OF_ALL:
                    ext.extra_compile_args = [*ext.extra_compile_args, "-O2"]
        parts = [ext for ext in self.extensions if ext.name in TOGETHER]
        library = next(ext for ext in self.extensions if ext.name == LIBRARY)
        with ThreadPoolExecutor(PROCESSORS) as pool:
            for objects in pool.map(self.objects_of, parts):
                library.extra_objects += objects
        library.depends = list(library.extra_objects)
        library.export_symbols = ["PyInit_" + ext.name.rpartition(".")[2] for ext in parts]
        self.extensions = [ext for ext in self.extensions if ext.name not in TOGETHER]
        super().build_extensions()

    def objects_of(self, ext: Extension) -> list[str]:
        """The object files of a module in the shared library; those that are new stay."""
        print(f"building {ext.name!r} extension", flush=True)
        objects = self.compiler.object_filenames(ext.sources, output_dir=self.build_temp)
        newest = max(os.path.getmtime(path) for path in [*ext.sources, *ext.depends])
        if self.force or not all(
            os.path.exists(path) and os.path.getmtime(path) >= newest for path in objects
        ):
            self.compiler.compile(
                ext.sources,
                output_dir=self.build_temp,
                macros=ext.define_macros,
                include_dirs=ext.include_dirs,
                extra_postargs=ext.extra_compile_args,
            )
        return objects

    def get_export_symbols(self, ext: Extension) -> list[str]:
        if ext.name == LIBRARY:  # it is no module itself
            return ext.export_symbols
        return super().get_export_symbols(ext)

    def leave_uncompiled(self, reason: str) -> None:
        for ext in self.extensions:
            Path(self.get_ext_fullpath(ext.name)).unlink(missing_ok=True)
        self.extensions = []
        if not self.inplace:  # the source tree is meant to be uncompiled and says nothing
            note = self.note_of_reason()
            note.parent.mkdir(parents=True, exist_ok=True)
            note.write_text(f'"""Why this is not compiled."""\n\nREASON = {reason!r}\n')
        print(f"wengert: installed uncompiled, which is slower: {reason}", file=sys.stderr)


setup(
    ext_modules=[*map(extension_of, compiled_sources()), Extension(LIBRARY, [])],
    cmdclass={"build_ext": BuildCompiledOrPure},
)
