#!/bin/sh
# Compiles the package by other compilers and for other machines than the rest of the tests, and runs what can be run. For
# Debian 12, from which it installs what is missing; what each part has shown is in inst/design/platforms.md.
#
#   sh tools/platforms.sh [clang] [arm64] [mingw] [whole]     without a name: all three
#
#   clang   the core (what tools/library.mk has), compiled by clang with sanitizers: random calls of the C interface for
#           a minute, by its libFuzzer (tests/fuzz), and the core's tests
#   arm64   the same, cross-compiled by GCC for 64-bit Arm and run by qemu, which is slow
#   mingw   the package's C++ as src/Makevars.win has it, compiled by mingw-w64 and linked with nothing but names of R, BLAS and LAPACK
#
# Some of the core's tests are enough to see that a platform has not been broken, and are what .ci/run has time for. `whole` takes an
# hour or two, and adds:
#
#   clang   all of the core's tests without sanitizers, by the newest clang that is there too; the R package by clang,
#           and its R tests
#   arm64   all of the core's tests, without contraction to fma and with it
#   mingw   the core's tests but for those of files and of fork(), under Wine: without AVX, as they are on Windows by default, and with it
#
# The last line is "N passed, N failed, N skipped". Logs of what failed are shown.
#
#   GPUCHOLMOD_PLATFORMS=DIR   where to build, and to keep it
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/tools/packages.sh"
. "$root/tools/counts.sh"
case ${GPUCHOLMOD_PLATFORMS:-} in
  '') scratch=$(mktemp -d "${TMPDIR:-/tmp}/gpucholmod-platforms.XXXXXX"); trap 'rm -rf "$scratch"' EXIT ;;
  *) mkdir -p "$GPUCHOLMOD_PLATFORMS"; scratch=$(CDPATH='' cd -- "$GPUCHOLMOD_PLATFORMS" && pwd) ;;
esac
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

platforms='' whole=
for argument in "$@"; do
  case $argument in
    clang | arm64 | mingw) platforms="$platforms $argument" ;;
    whole) whole=yes ;;
    *) echo "platforms.sh: it takes clang, arm64, mingw and whole, not '$argument'" >&2; exit 1 ;;
  esac
done
platforms=${platforms:-clang arm64 mingw}

jobs=$(getconf _NPROCESSORS_ONLN)
googletest=/usr/src/googletest/googletest
export LC_ALL=C.UTF-8

# What is run where not everything is: every kernel, threads, and what has to give the same bits, without what takes qemu minutes.
quick_tests="test_blocked test_batch test_thread_pool"
quick="Batch.*:Batch/Instructed.NothingDepends*:BlockedSweep.BothSigns*:BlockedSweep.LevelsAgree*:Helpers.*"

quick_or_whole() { if [ -n "$whole" ]; then echo "$2"; else echo "$1"; fi; }
flags="-std=c++17 $(quick_or_whole -O1 -O2) -Wall -Wextra -Werror"

# The core's tests: compiled into $scratch/$1, run by $2 (nothing: as they are). Further arguments are make's.
core_tests() { # $1 name, $2 what runs them, $3 filter
  name=$1 runner=$2 filter=$3
  shift 3
  stage "core, $name"
  at=$scratch/$(echo "$name" | tr -c 'a-z0-9\n' '-')
  status=0
  make -s -j "$jobs" -C "$root/tests/core" "$at/core_tests" BUILD="$at" "$@" >"$scratch/log" 2>&1 || status=$?
  count_one "$status" "$scratch/log" "core, $name: compilation"
  [ "$status" -eq 0 ] || return 0
  program=$at/core_tests
  [ -e "$program" ] || program=$program.exe
  # shellcheck disable=SC2086  # a word, or none
  (cd "$root/tests/core" && $runner "$program" --gtest_brief=1 --gtest_filter="$filter") >"$scratch/log" 2>&1 </dev/null || status=$?
  tr -d '\r' <"$scratch/log" >"$scratch/core"
  count_core "$status" "core, $name"
}

# The sources of the reference BLAS and LAPACK, $scratch/lapack: Debian has no compiled ones for Windows, nor, without a second
# architecture, for Arm.
lapack_source() {
  [ ! -d "$scratch/lapack/SRC" ] || return 0
  stage "reference BLAS and LAPACK"
  suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
  # shellcheck disable=SC2016  # apt-get fills these in
  mirror=$(apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Identifier: Packages' |
    awk -v suite="$suite" '$1 == suite && $2 == "main" && !found { found = 1; print $3 }')
  side=$scratch/apt
  mkdir -p "$side/state/lists/partial" "$side/cache/archives/partial" "$scratch/lapack"
  echo "deb-src ${mirror:-http://deb.debian.org/debian} $suite main" >"$side/sources.list"
  (
    cd "$side"
    set -- -o Dir::State="$side/state" -o Dir::Cache="$side/cache" -o Dir::Etc::sourcelist="$side/sources.list" -o Dir::Etc::sourceparts=-
    apt-get "$@" update && apt-get "$@" source --download-only lapack && tar -xzf lapack_*.orig.tar.gz --strip-components=1 -C "$scratch/lapack"
  ) >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
}

# Static libraries for core_tests in $scratch/$1-lib: GoogleTest, and of BLAS and LAPACK what the core takes.
test_libraries() { # $1 platform, $2 the names of its tools begin with, $3 and end with
  lapack_source
  lib=$scratch/$1-lib
  [ ! -e "$lib/libgtest.a" ] || return 0
  mkdir -p "$lib"
  (
    cd "$lib"
    reference=
    for file in dpotrf dpotrf2 dpotri dtrtri dtrti2 dlauum dlauu2 dgeqrf dgeqr2 dlarf dlarfb dlarfg dlarft \
      dlapy2 iladlc iladlr ilaenv ieeeck iparmq disnan dlaisnan; do
      reference="$reference $scratch/lapack/SRC/$file.f"
    done
    for file in dgemm dsyrk dtrmm dtrsm dtrsv dtrmv dgemv dger ddot dscal dcopy lsame xerbla; do
      reference="$reference $scratch/lapack/BLAS/SRC/$file.f"
    done
    reference="$reference $scratch/lapack/BLAS/SRC/dnrm2.f90 $scratch/lapack/INSTALL/dlamch.f"
    # shellcheck disable=SC2086  # a word for each file
    "$2-gfortran$3" -O2 -ffp-contract=off -c $reference
    "$2-g++$3" -std=c++17 -O1 -I"$googletest/include" -I"$googletest" -c "$googletest/src/gtest-all.cc" "$googletest/src/gtest_main.cc"
    "$2-ar" rcs libgtest.a gtest-all.o gtest_main.o
    rm gtest-all.o gtest_main.o
    "$2-ar" rcs libblas.a ./*.o
  ) >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
}

# An input that fails stays in tests/fuzz/build.
fuzzing() {
  stage "fuzzing"
  status=0
  eigen=$(Rscript -e 'cat(system.file("include", package = "RcppEigen"))')
  make -s -j "$jobs" -C "$root/tests/fuzz" run EIGEN="$eigen" >"$scratch/log" 2>&1 || status=$?
  grep '^stat::number_of_executed_units' "$scratch/log" || :
  count_one "$status" "$scratch/log" "fuzzing"
}

clang_r_package() {
  stage "R package, by clang"
  library=$scratch/r-library copy=$scratch/r-package
  rm -rf "$library" "$copy"
  mkdir "$library" "$copy"
  printf '%s\n' 'CC = clang' 'CXX = clang++' 'CXX17 = clang++' 'CXX17FLAGS = -O2' >"$scratch/Makevars"
  status=0
  (
    export R_MAKEVARS_USER="$scratch/Makevars" GPUCHOLMOD_CUDA=no MAKEFLAGS="-j$jobs"
    cd "$copy" && R CMD build --no-build-vignettes "$root" && R CMD INSTALL --library="$library" gpucholmod_*.tar.gz
  ) >"$scratch/log" 2>&1 || status=$?
  count_one "$status" "$scratch/log" "R package, by clang: installation"
  [ "$status" -eq 0 ] || return 0
  r_tests "by clang" "$library"
}

on_clang() {
  stage "what is needed by clang"
  install_missing r-base-dev RcppEigen gtest clang fuzzer
  fuzzing
  if [ -z "$whole" ]; then
    clang_core_tests clang++ "$quick" TESTS="$quick_tests" \
      LIBRARY="$root/tests/fuzz/build" LDFLAGS=-fsanitize=address,undefined
    return 0
  fi
  for compiler in clang++ $(newest_clang); do clang_core_tests "$compiler" '*'; done
  install_missing Rcpp Matrix testthat cli knitr rmarkdown
  clang_r_package
}

clang_core_tests() { # $1 compiler, $2 filter, further arguments for make
  compiler=$1 filter=$2
  shift 2
  core_tests "$("$compiler" --version | sed -n '1s/.*clang version \([0-9]*\).*/clang \1/p')" "" "$filter" \
    CXX="$compiler" CXXFLAGS="$flags -ffp-contract=off" "$@"
}

# clang++-19 and the like, if there is one beside clang++.
newest_clang() {
  for version in 22 21 20 19 18 17 16 15; do
    if command -v "clang++-$version"; then return; fi
  done
}

on_arm64() {
  stage "what is needed by arm64"
  install_missing r-base-dev RcppEigen gtest arm64
  test_libraries arm64 aarch64-linux-gnu ''
  tests=$(quick_or_whole "$quick_tests" "")
  for contraction in $(quick_or_whole fast "fast off"); do
    contracted='*'  # with fma, the panel method's arithmetic is not that of the reference to the bit (inst/design/panel-method.md)
    [ "$contraction" = off ] || contracted='-Drive.NeedsNoMoreOfAnExecutorThanItsContract'
    core_tests "arm64, contraction $contraction" qemu-aarch64-static "$(quick_or_whole "$quick" "$contracted")" \
      CXX=aarch64-linux-gnu-g++ CXXFLAGS="$flags -ffp-contract=$contraction" LDFLAGS=-static GTEST_INCLUDE="$googletest/include" \
      LIBRARIES="-L$scratch/arm64-lib -lblas -lgtest -lgfortran -lm -lpthread" ${tests:+TESTS="$tests"}
  done
}

# Import libraries of what R and its BLAS and LAPACK are on Windows, from the names that they have here.
import_libraries() { # $1 where
  nm -D --defined-only "$(R RHOME)/lib/libR.so" |
    awk 'BEGIN { print "EXPORTS" } $2 == "T" || $2 == "W" { print $3 } $2 ~ /^[BDR]$/ { print $3, "DATA" }' >"$1/R.def"
  sed -n '1i EXPORTS
s/^void \([a-z]*_\)(.*/\1/p' "$root/src/cpu/blas.h" >"$1/Rblas.def"
  for library in R Rblas; do
    x86_64-w64-mingw32-dlltool --input-def "$1/$library.def" --dllname "$library.dll" --output-lib "$1/lib$library.a"
  done
}

# R's headers are those of Linux, which differ for Windows in few places and ask for it there.
mingw_r_package() {
  stage "R package, by mingw-w64"
  at=$scratch/mingw-package
  rm -rf "$at"
  mkdir "$at"
  objects=$(sed -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' "$root/src/Makevars.win" | sed -n 's/^OBJECTS = *//p')
  r_flags=$(sed -n 's/^PKG_CPPFLAGS = //p' "$root/src/Makevars.win")
  r_flags="$r_flags $(Rscript -e 'cat(paste("-isystem", c(file.path(find.package(c("Rcpp", "RcppEigen")), "include"), R.home("include"))))')"
  status=0
  # shellcheck disable=SC2046,SC2086  # a word for each flag and file
  (
    cd "$root/src"
    for object in $objects; do
      mkdir -p "$at/$(dirname "$object")"
      echo "-c ${object%.o}.cpp -o $at/$object"
    done | xargs -P "$jobs" -L 1 x86_64-w64-mingw32-g++-posix -std=c++17 $(quick_or_whole -O0 -O2) -Wall -Werror $r_flags &&
      import_libraries "$at" && cd "$at" && x86_64-w64-mingw32-g++-posix -shared -static -o gpucholmod.dll $objects -L. -lR -lRblas &&
      x86_64-w64-mingw32-objdump -p gpucholmod.dll >contents && grep -q 'R_init_gpucholmod$' contents
  ) >"$scratch/log" 2>&1 || status=$?
  [ "$status" -ne 0 ] || echo "gpucholmod.dll takes $(sed -n 's/.*DLL Name: //p' "$at/contents" | tr '\n' ' ')"
  count_one "$status" "$scratch/log" "R package, by mingw-w64: compilation and linking"
}

mingw_core_tests() { # $1 name, further flags
  core_tests "mingw-w64, $1" /usr/lib/wine/wine64 '*' CXX=x86_64-w64-mingw32-g++-posix LEFT_OUT="test_file test_output_file test_process_file test_thread_pool" \
    CXXFLAGS="$flags -ffp-contract=off -Wa,-mbig-obj ${2:-}" LDFLAGS=-static GTEST_INCLUDE="$googletest/include" \
    LIBRARIES="-L$scratch/mingw-lib -lblas -lgtest -lgfortran -lquadmath"
}

on_mingw() {
  stage "what is needed by mingw"
  install_missing r-base-dev Rcpp RcppEigen mingw
  mingw_r_package
  [ -n "$whole" ] || return 0
  install_missing gtest wine
  test_libraries mingw x86_64-w64-mingw32 -posix
  export WINEPREFIX="$scratch/wine" WINEDEBUG=-all
  mingw_core_tests "without AVX"
  mingw_core_tests "with AVX" -DGPUCHOLMOD_WINDOWS_AVX
}

for platform in $platforms; do "on_$platform"; done
finish
