#!/bin/sh
# Installs what is missing, builds gpucholmod into a library of its own, and runs the example of inst/examples, with the
# factor on the GPU where there is one.
#
#   sh tools/demo.sh [arguments of sliding_window.R, e.g. --features=2048]
#
# Meant for a fresh Debian or Ubuntu: R, its compilers, Rcpp and RcppEigen come from apt-get, for which it must be root
# or have sudo. Where all of them are there, it needs neither. The plot goes to ./sliding_window.png.
#
#   GPUCHOLMOD_DEMO_LIB   an R library to install into and to keep; without it, a temporary one
#
# The environment variables of configure, such as GPUCHOLMOD_CUDA=no, work here too.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/tools/packages.sh"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/gpucholmod-demo.XXXXXX")
trap 'rm -rf "$scratch"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

fail() {
  echo "demo.sh: $*" >&2
  exit 1
}

# Runs a command with its output in a log, which is shown if the command fails.
log=$scratch/log
quietly() {
  if "$@" >"$log" 2>&1; then return; fi
  cat "$log" >&2
  fail "this failed, for the reason above: $*"
}

stage "what is needed"
install_missing r-base-dev Rcpp RcppEigen

# From a tarball, so that no object files are left behind in src/.
stage "building and installing gpucholmod"
echo "takes a minute or two with CUDA, which is compiled for several GPUs"
library=${GPUCHOLMOD_DEMO_LIB:-$scratch/library}
mkdir -p "$library"
library=$(CDPATH='' cd -- "$library" && pwd)
mkdir "$scratch/build"
build() (cd "$scratch/build" && R CMD build --no-build-vignettes "$root")
quietly build
export MAKEFLAGS="${MAKEFLAGS:--j2}"
quietly R CMD INSTALL --library="$library" "$scratch"/build/gpucholmod_*.tar.gz
grep '^configure:' "$log" || :
export R_LIBS="$library${R_LIBS:+:$R_LIBS}"

stage "gpu_info()"
Rscript -e 'gpucholmod::gpu_info()'

stage "sliding_window.R"
Rscript "$root/inst/examples/sliding_window.R" --out=sliding_window.png "$@"

stage ""
if [ -n "${GPUCHOLMOD_DEMO_LIB:-}" ]; then echo "To use it: library(gpucholmod, lib.loc = \"$library\")"; fi
