#!/bin/sh
# Installs what is missing, and runs every test there is:
#
#   library        the core as a library for programs without R (tools/library.mk)
#   core           the core's own C++ tests (tests/core), on the library and under sanitizers
#   configure      configure and cleanup, with and without nvcc (tests/configure.sh)
#   testthat       the R tests on the package built for the CPU alone, and, where nvcc is found, built with CUDA: without a GPU
#                  those files alone that R CMD check does not run whole, or for which that matters. The GPU's own tests
#                  are compiled with the latter
#   C interface    a package that uses it (tests/client) is checked, and tests/client.R run, on the package built for the CPU
#   programs       that use the library: tests/library.c, tests/library.cpp, and in Octave tests/octave*.m
#   Python         the Python package (inst/python), installed by pip: tests/python, with that library
#   benchmarks     every script and program of inst/bench runs in its smallest form (tools/benchmarks.R)
#   README         README.md is what README.Rmd gives
#   pasted blocks  the R code of README.md and the vignettes runs as it stands (tools/paste_blocks.R)
#   check          R CMD check --as-cran on the tarball: no ERROR, no WARNING, no NOTE
#
# Each section says how long it took. The last line is "N passed, N failed, N skipped", summed over all of them. Logs of
# what failed are shown.
#
#   GPUCHOLMOD_REQUIRE_NVCC=1   fail where there is no nvcc, instead of leaving out the build with CUDA
#   GPUCHOLMOD_REQUIRE_GPU=1    fail where there is no GPU, instead of skipping its tests
#   GPUCHOLMOD_CUDA_ARCH        the architectures to compile for, as for configure
#   GPUCHOLMOD_CHECK_ARCH       those that R CMD check compiles for: without it the same, or else 90-real
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/tools/packages.sh"
. "$root/tools/counts.sh"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/gpucholmod-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
export LC_ALL=C.UTF-8  # a bare machine has no other UTF-8 locale, and R CMD check wants one

core_tests() { # $1 name, further arguments for make
  name=$1
  shift
  stage "core, $name"
  status=0
  make -s -j "$jobs" -C "$root/tests/core" check SHARDS=$((4 * jobs)) "$@" >"$scratch/core" 2>&1 || status=$?
  count_core "$status" "core, $name"
}

# Compiled once, in $scratch/library/build, for the core's tests, the programs, Python and the benchmarks.
library() {
  stage "library"
  status=0
  mkdir "$scratch/library"
  eigen=$(Rscript -e 'cat(system.file("include", package = "RcppEigen"))')
  make -s -f "$root/tools/library.mk" -j "$jobs" install octave EIGEN="$eigen" \
    BUILD="$scratch/library/build" PREFIX="$scratch/library" CXXFLAGS="-O2 -Wall -Wextra -Werror" \
    >"$scratch/log" 2>&1 || status=$?
  count_one "$status" "$scratch/log" library
}

# The GPU's own tests can be compiled without a GPU; `make check-cuda` runs them where there is one. The kernels are
# compiled for them anew, as a warning is an error then.
core_cuda() {
  stage "core, compilation of the GPU's tests"
  status=0
  make -s -j "$jobs" -C "$root/tests/core" cuda-tests CUDA="$(cuda_home)" \
    LIBRARY="$scratch/library/build" >"$scratch/core" 2>&1 || status=$?
  count_one "$status" "$scratch/core" "core, compilation of the GPU's tests"
}

configure_tests() {
  stage "configure"
  status=0
  sh "$root/tests/configure.sh" >"$scratch/configure" 2>&1 || status=$?
  count_last_line "$status" "$scratch/configure" configure
}

# R CMD build, INSTALL and check compile the same files with the same flags, in folders of their own. (The tests of
# configure are run without: they link to the compiler under its own name.)
through_ccache() {
  if [ -x /usr/lib/ccache/g++ ]; then
    export PATH="/usr/lib/ccache:$PATH" CCACHE_DIR="${CCACHE_DIR:-$scratch/ccache}" CCACHE_NOHASHDIR=1
  fi
}

# Sets $tarball. R CMD build installs the package in order to build the vignettes, which need no CUDA.
build_tarball() {
  stage "R CMD build"
  (cd "$scratch" && GPUCHOLMOD_CUDA=no R CMD build "$root" >"$scratch/build" 2>&1) || {
    count_one 1 "$scratch/build" "R CMD build"
    finish
  }
  tarball=$(ls "$scratch"/gpucholmod_*.tar.gz)
  echo "built $(basename "$tarball")"
}

# Installs what is in the tarball into a library of its own. The objects stay in $scratch/gpucholmod/src.
install_tarball() { # $1 name, $2 the library, $3 yes or no: with CUDA
  stage "installation, $1"
  mkdir "$2"
  rm -rf "$scratch/gpucholmod"
  tar -xzf "$tarball" -C "$scratch"
  status=0
  R CMD INSTALL --library="$2" --configure-args="--with-cuda=$3" "$scratch/gpucholmod" \
    >"$scratch/install" 2>&1 || status=$?
  grep '^configure:' "$scratch/install" || :
  count_one "$status" "$scratch/install" "installation, $1"
}

c_interface() { # $1 the library
  stage "C interface"
  mkdir "$scratch/client"
  status=0
  (cd "$scratch/client" && export R_LIBS="$1${R_LIBS:+:$R_LIBS}" && R CMD build "$root/tests/client" &&
    _R_CHECK_FORCE_SUGGESTS_=false R CMD check --no-manual --install-args=--no-docs gpucholmodclient_*.tar.gz &&
    grep -q '^Status: OK$' gpucholmodclient.Rcheck/00check.log &&
    R_LIBS="$PWD/gpucholmodclient.Rcheck:$R_LIBS" Rscript "$root/tests/client.R") >"$scratch/client/log" 2>&1 || status=$?
  grep '^RAM' "$scratch/client/log" || :
  count_one "$status" "$scratch/client/log" "C interface"
}

programs() {
  stage "programs"
  status=0
  at="$scratch/library"
  (
    cc -std=c99 -Wall -Wextra -Werror -pedantic "$root/tests/library.c" -I"$at/include" "$at/lib/libgpucholmod.so" \
        -Wl,-rpath,"$at/lib" -lm -o "$at/shared" && "$at/shared" &&
      cc -std=c99 "$root/tests/library.c" -I"$at/include" "$at/lib/libgpucholmod.a" -llapack -lblas -lpthread -lstdc++ -lm -o "$at/static" &&
      "$at/static" &&
      for standard in c++17 c++20; do
        c++ -std=$standard -Wall -Wextra -Werror -pedantic "$root/tests/library.cpp" -I"$at/include" "$at/lib/libgpucholmod.so" \
          -Wl,-rpath,"$at/lib" -o "$at/cpp" && "$at/cpp" || exit 1
      done && for script in octave octave_arguments octave_own_tests; do
        octave-cli --quiet --norc --path "$at/build/octave" "$root/tests/$script.m" || exit 1
      done
  ) >"$at/log" 2>&1 || status=$?
  grep -E '^(Octave|C\+\+)' "$at/log" || :
  count_one "$status" "$at/log" "programs"
}

# pip leaves what it builds in the sources: therefore a copy of them.
python_package() {
  stage "Python"
  status=0
  at="$scratch/python"
  mkdir "$at"
  cp -R "$root/inst/python" "$at/sources"
  (
    PIP_ROOT_USER_ACTION=ignore "$python" -m pip install --quiet --no-index --no-deps --no-build-isolation \
      --target="$at/installed" "$at/sources" &&
      GPUCHOLMOD_LIBRARY="$scratch/library/lib/libgpucholmod.so" PYTHONPATH="$at/installed" PYTHONDONTWRITEBYTECODE=1 \
        "$python" "$root/tests/python/run.py"
  ) >"$at/log" 2>&1 || status=$?
  grep '^skipped' "$at/log" || :
  count_last_line "$status" "$at/log" Python
}

# If there is nvcc, after the installation with CUDA, which leaves the core built.
benchmarks() { # $1 the library
  stage "benchmarks"
  status=0
  cuda=$(cuda_home)
  (cd "$root" && R_LIBS="$1${R_LIBS:+:$R_LIBS}" Rscript tools/benchmarks.R "--build=$scratch/library/build" \
    ${cuda:+"--cuda=$cuda" "--objects=$scratch/gpucholmod/src"}) >"$scratch/benchmarks" 2>&1 || status=$?
  grep '^skipped' "$scratch/benchmarks" || :
  count_last_line "$status" "$scratch/benchmarks" benchmarks
}

knit_readme() {
  cd "$scratch/readme" &&
    R_LIBS="$scratch/cpu${R_LIBS:+:$R_LIBS}" Rscript -e 'knitr::knit("README.Rmd", quiet = TRUE)' &&
    diff "$root/README.md" README.md
}

readme() {
  stage "README"
  mkdir "$scratch/readme"
  cp "$root/README.Rmd" "$scratch/readme"
  status=0
  (knit_readme) >"$scratch/knit" 2>&1 || status=$?
  count_one "$status" "$scratch/knit" README
}

pasted_blocks() {
  stage "pasted blocks"
  status=0
  (cd "$root" && R_LIBS="$scratch/cpu${R_LIBS:+:$R_LIBS}" Rscript tools/paste_blocks.R README.md vignettes/*.Rmd) \
    >"$scratch/pasted" 2>&1 || status=$?
  count_last_line "$status" "$scratch/pasted" "pasted blocks"
}

# CRAN's rule on the size of packages is about data and documentation; the check's note of 5 MB counts code too. So our
# own bound is 8 MB, and 12 with CUDA. What a machine without network or TeX cannot check is left out. Debian compiles R
# packages with debugging symbols, which the check would count into the size of the package, as it would local symbols,
# code for many GPUs, and that for MPI: without them here. The names of the functions called, which are checked, stay.
check_tarball() {
  stage "R CMD check"
  status=0
  (
    cd "$scratch"
    if have_nvcc; then most=12; else most=8; fi
    _R_CHECK_CRAN_INCOMING_=FALSE _R_CHECK_SYSTEM_CLOCK_=0 NOT_CRAN=false _R_CHECK_PKG_SIZES_THRESHOLD_=$most \
      GPUCHOLMOD_CUDA_ARCH="${GPUCHOLMOD_CHECK_ARCH:-${GPUCHOLMOD_CUDA_ARCH:-90-real}}" GPUCHOLMOD_MPI=no \
      R_STRIP_SHARED_LIB="strip --strip-debug --discard-all" \
      R CMD check --as-cran --no-manual --install-args=--strip "$tarball" >"$scratch/check" 2>&1
  ) && grep -q '^Status: OK$' "$scratch/check" || status=1
  for log in "$scratch"/gpucholmod.Rcheck/00install.out "$scratch"/gpucholmod.Rcheck/tests/*.fail; do
    if [ "$status" -ne 0 ] && [ -e "$log" ]; then cat "$log" >>"$scratch/check"; fi
  done
  grep -h '^configure:' "$scratch/gpucholmod.Rcheck/00install.out" || :
  count_one "$status" "$scratch/check" "R CMD check --as-cran"
}

stage "what is needed"
install_missing r-base-dev Rcpp RcppEigen Matrix mgcv cli knitr rmarkdown testthat gtest mpi Rmpi checkbashisms octave pandoc tidy qpdf ccache \
  numpy scipy torch pip setuptools wheel

jobs=$(getconf _NPROCESSORS_ONLN)
export MAKEFLAGS="${MAKEFLAGS:--j$jobs}"

library
core_tests plain LIBRARY="$scratch/library/build"
core_tests "address and undefined-behaviour sanitizers" SANITIZE=address,undefined
configure_tests
through_ccache
build_tarball
install_tarball "for the CPU alone" "$scratch/cpu" no
r_tests "built for the CPU alone" "$scratch/cpu"
if have_nvcc; then
  install_tarball "with CUDA" "$scratch/cuda" yes
  core_cuda
  # Without a GPU R CMD check runs the others, on such a package.
  r_tests "built with CUDA" "$scratch/cuda" 'test-(conditions|control|cuda|factor_file_modify|gpu_info|interrupt|processes|progress)'
elif [ -n "${GPUCHOLMOD_REQUIRE_NVCC:-}" ]; then
  count 0 1 0 "built with CUDA: nvcc is required, and was not found"
else
  count 0 0 1 "built with CUDA: nvcc was not found"
fi
c_interface "$scratch/cpu"
programs
python_package
benchmarks "$scratch/cpu"
readme
pasted_blocks
check_tarball
finish
