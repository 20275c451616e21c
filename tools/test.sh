#!/bin/sh
# Installs what is missing, and runs every test there is:
#
#   core        the core's own C++ tests (tests/core), plain and under sanitizers
#   configure   configure and cleanup, with and without nvcc (tests/configure.sh)
#   testthat    the R tests on the package built for the CPU alone, and, where nvcc is found, built with CUDA
#   check       R CMD check --as-cran on the tarball: no ERROR, no WARNING, no NOTE
#   README      README.md is what README.Rmd gives
#
# The last line is "N passed, N failed, N skipped", summed over all of them. Logs of what failed are shown.
#
#   GPUCHOLMOD_REQUIRE_NVCC=1   fail where there is no nvcc, instead of leaving out the build with CUDA
#   GPUCHOLMOD_REQUIRE_GPU=1    fail where there is no GPU, instead of skipping its tests
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/tools/packages.sh"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/gpucholmod-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
passed=0 failed=0 skipped=0
export LC_ALL=C.UTF-8  # a bare machine has no other UTF-8 locale, and R CMD check wants one

section() { printf '\n== %s\n' "$1"; }

# Adds "N passed, N failed, N skipped" to the sums.
count() {
  echo "$4: $1 passed, $2 failed, $3 skipped"
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

section "what is needed"
install_missing r-base-dev Rcpp RcppEigen Matrix mgcv cli knitr rmarkdown testthat gtest checkbashisms pandoc tidy

section "core"
jobs=$(getconf _NPROCESSORS_ONLN)
export MAKEFLAGS="${MAKEFLAGS:--j$jobs}"
core_tests() { # $1 name, further arguments for make
  name=$1
  shift
  bad=0
  # A run that exits with an error has failed, whatever it printed: a leak is found after the last test has passed.
  if ! make -s -j "$jobs" -C "$root/tests/core" check "$@" >"$scratch/core" 2>&1; then
    cat "$scratch/core"
    bad=$(grep -c '^\[  FAILED  \] .* ms)$' "$scratch/core" || :)
    [ "$bad" -gt 0 ] || bad=1
  fi
  good=$(sed -n 's/^\[  PASSED  \] \([0-9]*\) tests\{0,1\}\.$/\1/p' "$scratch/core")
  left_out=$(sed -n 's/^\[  SKIPPED \] \([0-9]*\) tests\{0,1\}\.$/\1/p' "$scratch/core")
  [ -n "$good" ] || [ "$bad" -gt 0 ] || bad=1
  count "${good:-0}" "$bad" "${left_out:-0}" "core, $name"
}
core_tests plain
core_tests "address and undefined-behaviour sanitizers" SANITIZE=address,undefined
# The GPU's own tests can be compiled without a GPU; `make check-cuda` runs them where there is one.
if have_nvcc; then
  if make -s -j "$jobs" -C "$root/tests/core" cuda-tests CUDA="$(cuda_home)" >"$scratch/core" 2>&1; then
    count 1 0 0 "core, compilation of the GPU's tests"
  else
    cat "$scratch/core"
    count 0 1 0 "core, compilation of the GPU's tests"
  fi
fi

section "configure"
sh "$root/tests/configure.sh" >"$scratch/configure" 2>&1 || cat "$scratch/configure"
# shellcheck disable=SC2046  # three numbers
set -- $(sed -n '$s/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$scratch/configure")
count "${1:-0}" "${2:-1}" "${3:-0}" configure

section "R CMD build"
# It installs the package in order to build the vignettes, which need no CUDA.
(cd "$scratch" && GPUCHOLMOD_CUDA=no R CMD build "$root" >"$scratch/build" 2>&1) || {
  cat "$scratch/build"
  printf '\n%d passed, %d failed, %d skipped\n' "$passed" $((failed + 1)) "$skipped"
  exit 1
}
tarball=$(ls "$scratch"/gpucholmod_*.tar.gz)
echo "built $(basename "$tarball")"

# Install the tarball into a library of its own, run the R tests on it.
variant() { # $1 name, $2 yes or no: with CUDA
  section "testthat, $1"
  library=$scratch/library-$2
  mkdir -p "$library"
  if ! R CMD INSTALL --library="$library" --configure-args="--with-cuda=$2" "$tarball" >"$scratch/install" 2>&1; then
    cat "$scratch/install"
    count 0 1 0 "installation, $1"
    return
  fi
  grep '^configure:' "$scratch/install"
  count 1 0 0 "installation, $1"
  if (cd "$root" && R_LIBS="$library${R_LIBS:+:$R_LIBS}" NOT_CRAN=true Rscript tools/testthat.R "$scratch/counts"); then :; fi
  if [ -s "$scratch/counts" ]; then read -r good bad left <"$scratch/counts"; else good=0 bad=1 left=0; fi
  rm -f "$scratch/counts"
  count "$good" "$bad" "$left" "testthat, $1"
}
variant "built for the CPU alone" no
if have_nvcc; then
  variant "built with CUDA" yes
elif [ -n "${GPUCHOLMOD_REQUIRE_NVCC:-}" ]; then
  count 0 1 0 "built with CUDA: nvcc is required, and was not found"
else
  count 0 0 1 "built with CUDA: nvcc was not found"
fi

section "README"
mkdir "$scratch/readme"
cp "$root/README.Rmd" "$scratch/readme"
if (
  cd "$scratch/readme"
  R_LIBS="$scratch/library-no${R_LIBS:+:$R_LIBS}" Rscript -e 'knitr::knit("README.Rmd", quiet = TRUE)' >"$scratch/knit" 2>&1
) && diff "$root/README.md" "$scratch/readme/README.md" >>"$scratch/knit"; then
  count 1 0 0 "README"
else
  cat "$scratch/knit"
  count 0 1 0 "README"
fi

section "R CMD check"
# What a machine without network or TeX cannot check is left out. Debian compiles R packages with debugging symbols,
# which the check would count into the size of the package, as it would local symbols, and code for many GPUs: without
# them here.
printf 'CXX17FLAGS = -O2\nSHLIB_CXX17LDFLAGS = -shared -Wl,-x\n' >"$scratch/Makevars"
if (
  cd "$scratch"
  _R_CHECK_CRAN_INCOMING_=FALSE _R_CHECK_SYSTEM_CLOCK_=0 NOT_CRAN=false R_MAKEVARS_USER="$scratch/Makevars" \
    GPUCHOLMOD_CUDA_ARCH="${GPUCHOLMOD_CUDA_ARCH:-90}" \
    R CMD check --as-cran --no-manual "$tarball" >"$scratch/check" 2>&1
) && grep -q '^Status: OK$' "$scratch/check"; then
  count 1 0 0 "R CMD check --as-cran"
else
  cat "$scratch/check"
  for log in "$scratch"/gpucholmod.Rcheck/00install.out "$scratch"/gpucholmod.Rcheck/tests/*.fail; do
    if [ -e "$log" ]; then cat "$log"; fi
  done
  count 0 1 0 "R CMD check --as-cran"
fi

printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
