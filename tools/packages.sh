# shellcheck shell=sh
# Sourced by demo.sh, test.sh and platforms.sh: what they need from Debian or Ubuntu, how it is installed, and how stages are announced.

# Announces a stage, and what the one before it took.
stage_name=
stage() { # $1 name, or nothing at the end
  now=$(date +%s)
  [ -z "$stage_name" ] || echo "-- $stage_name: $((now - stage_start)) s"
  stage_name=$1
  stage_start=$now
  [ -z "$1" ] || printf '\n== %s\n' "$1"
}

# Whether an R package can be loaded.
have_r_package() {
  command -v Rscript >/dev/null &&
    Rscript -e "quit(status = !nzchar(system.file(package = '$1')))" >/dev/null 2>&1
}

# Whether Debian's Python, which need not be the first on PATH, finds a module.
python=/usr/bin/python3
have_python_module() { "$python" -c "import $1" >/dev/null 2>&1; }

# Whether the compiler finds GoogleTest.
have_gtest() {
  echo '#include <gtest/gtest.h>' | c++ -std=c++17 -x c++ -fsyntax-only - >/dev/null 2>&1
}

# Whether clang is there, with libFuzzer and sanitizers, which Debian only recommends to those who install clang.
have_fuzzer() {
  echo 'extern "C" int LLVMFuzzerTestOneInput(const unsigned char *, unsigned long) { return 0; }' |
    clang++ -fsanitize=fuzzer,address,undefined -x c++ -o /dev/null - >/dev/null 2>&1
}

have_toolchain() {
  command -v R >/dev/null && command -v Rscript >/dev/null && command -v make >/dev/null &&
    compiler=$(R CMD config CXX17 2>/dev/null) && command -v "${compiler%% *}" >/dev/null
}

# Where configure would look for nvcc, but for packages of R.
have_nvcc() {
  [ -x "${GPUCHOLMOD_CUDA_HOME:-/none}/bin/nvcc" ] || [ -x "${CUDA_HOME:-/none}/bin/nvcc" ] ||
    [ -x "${CUDA_PATH:-/none}/bin/nvcc" ] || command -v "${NVCC:-nvcc}" >/dev/null || [ -x /usr/local/cuda/bin/nvcc ]
}

# The toolkit that configure would find first.
cuda_home() {
  for found in "${GPUCHOLMOD_CUDA_HOME:-}" "${CUDA_HOME:-}" "${CUDA_PATH:-}" \
    "$(dirname "$(dirname "$(command -v "${NVCC:-nvcc}" || echo /none/bin/nvcc)")")" /usr/local/cuda; do
    if [ -x "$found/bin/nvcc" ]; then
      echo "$found"
      return
    fi
  done
}

can_install() {
  command -v apt-get >/dev/null && { [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null; }
}

# The Debian packages of what is not there, whoever installed it.
missing() {
  for need in "$@"; do
    case $need in
      r-base-dev) have_toolchain || echo r-base-dev ;;
      gtest) have_gtest || echo libgtest-dev ;;
      checkbashisms) command -v checkbashisms >/dev/null || echo devscripts ;;
      mpi)
        command -v mpicc >/dev/null || echo libopenmpi-dev
        command -v mpirun >/dev/null || echo openmpi-bin
        ;;
      octave) command -v mkoctfile >/dev/null || echo octave-dev ;;
      pandoc | tidy | qpdf) command -v "$need" >/dev/null || echo "$need" ;;
      numpy | scipy | pip | setuptools | wheel) have_python_module "$need" || echo "python3-$need" ;;
      torch)  # not everywhere; its tests are skipped where it is missing
        have_python_module torch || ! apt-cache show python3-torch >/dev/null 2>&1 || echo python3-torch
        ;;
      ccache) command -v ccache >/dev/null || ! can_install || echo ccache ;;  # saves time, no more
      clang) command -v clang++ >/dev/null || echo clang ;;
      fuzzer) have_fuzzer || echo libclang-rt-dev ;;
      arm64)
        command -v aarch64-linux-gnu-g++ >/dev/null || echo g++-aarch64-linux-gnu
        command -v aarch64-linux-gnu-gfortran >/dev/null || echo gfortran-aarch64-linux-gnu
        command -v qemu-aarch64-static >/dev/null || echo qemu-user-static
        ;;
      mingw) command -v x86_64-w64-mingw32-g++-posix >/dev/null || echo g++-mingw-w64-x86-64-posix ;;
      wine)
        command -v x86_64-w64-mingw32-gfortran-posix >/dev/null || echo gfortran-mingw-w64-x86-64-posix
        [ -x /usr/lib/wine/wine64 ] || echo wine64
        ;;
      *) have_r_package "$need" || echo "r-cran-$need" | tr '[:upper:]' '[:lower:]' ;;
    esac
  done
}

as_root() {
  if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo "$@"; fi
}

# Installs what is missing of: r-base-dev, gtest, mpi, checkbashisms, octave, pandoc, tidy, qpdf, modules of
# Python, ccache, clang, fuzzer, arm64 and mingw (cross-compilers), wine, and R packages by name.
install_missing() {
  packages=$(missing "$@" | tr '\n' ' ')
  if [ -z "$packages" ]; then
    echo "all there: $(R --version | head -n 1); $*"
    return
  fi
  echo "missing: $packages"
  command -v apt-get >/dev/null || { echo "install them first: there is no apt-get here to do it" >&2; exit 1; }
  [ "$(id -u)" -eq 0 ] || command -v sudo >/dev/null ||
    { echo "installing takes root, or sudo: as root, run  apt-get install $packages" >&2; exit 1; }
  echo "installing with apt-get; this takes some minutes"
  apt_log=$(mktemp)
  # shellcheck disable=SC2086  # a word for each package
  if ! { as_root apt-get update &&
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $packages; } >"$apt_log" 2>&1; then
    cat "$apt_log" >&2
    rm -f "$apt_log"
    exit 1
  fi
  rm -f "$apt_log"
  packages=$(missing "$@" | tr '\n' ' ')
  [ -z "$packages" ] || { echo "apt-get has installed them, but R ($(command -v R)) still does not find: $packages" >&2; exit 1; }
}
