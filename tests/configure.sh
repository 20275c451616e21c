#!/bin/sh
# Tests of configure and cleanup, on a copy of the package: with a real nvcc where there is one, and with stand-ins.
# Prints a line per test and, last, "N passed, N failed, N skipped".
set -u
here=$(cd "$(dirname "$0")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
passed=0 failed=0 skipped=0

real_nvcc=
for candidate in "${CUDA_HOME:-/none}/bin/nvcc" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc; do
  [ -z "$real_nvcc" ] && [ -x "$candidate" ] && real_nvcc=$candidate
done

# A PATH with what configure needs, and no nvcc.
mkdir "$scratch/bin"
for tool in sh sed awk tr sort head tail cat rm mkdir mktemp dirname basename uname readlink printf echo ls expr find grep \
  cut make R Rscript g++ cc gcc as ld env; do
  found=$(command -v "$tool") && [ -x "$found" ] && ln -s "$found" "$scratch/bin/$tool"
done

# A stand-in nvcc: knows three targets, and compiles to an empty object (mode "works") or fails.
stand_in() { # $1 folder, $2 mode
  mkdir -p "$1/bin" "$1/lib64"
  cat >"$1/bin/nvcc" <<NVCC
#!/bin/sh
case "\$*" in
  *--list-gpu-arch*) printf 'compute_75\ncompute_80\ncompute_90\n' ;;
  *--version*) printf 'a\nCuda compilation tools, release 13.0\nb\n' ;;
  *) [ "$2" = works ] || { echo "nvcc stand-in: refused"; exit 1; }
     while [ \$# -gt 1 ]; do [ "\$1" = -o ] && out=\$2; shift; done
     echo 'void gpucholmod_nothing() {}' | g++ -x c++ -fPIC -c - -o "\$out" ;;
esac
NVCC
  chmod +x "$1/bin/nvcc"
  echo 'void gpucholmod_cudart() {}' | g++ -x c++ -fPIC -c - -o "$1/lib64/x.o"
  ar rc "$1/lib64/libcudart_static.a" "$1/lib64/x.o"
}

# The usual place of the toolkit, which a test may put elsewhere.
usual=$scratch/nowhere

# Run configure on a fresh copy with a clean environment; extra variables and arguments follow.
configure() {
  rm -rf "$scratch/copy"
  mkdir "$scratch/copy"
  cp -r "$here/configure" "$here/cleanup" "$here/tools" "$here/src" "$scratch/copy/"
  sed -i "s|/usr/local/cuda|$usual|g" "$scratch/copy/configure"
  (cd "$scratch/copy" && rm -f src/Makevars src/cuda_build.h &&
    env -i PATH="$scratch/bin" HOME="$HOME" "$@") >"$scratch/log" 2>&1
}
makevars() { grep -q -- "$1" "$scratch/copy/src/Makevars"; }
header() { grep -q -- "$1" "$scratch/copy/src/cuda_build.h"; }
log() { grep -q -- "$1" "$scratch/log"; }

check() { # $1 what is tested, then a command
  what=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
    echo "ok    $what"
  else
    failed=$((failed + 1))
    echo "FAIL  $what"
    sed 's/^/      /' "$scratch/log"
  fi
}

cpu_only() { makevars 'cuda_absent/backend.o' && ! makevars '@' && ! header '@' && log 'without CUDA'; }
with_mpi() { makevars 'mpi/world.o' && ! makevars mpi_absent && ! makevars '@' && log 'building with MPI'; }
without_mpi() { makevars 'mpi_absent/backend.o' && ! makevars ' mpi/' && log 'without MPI'; }
with_cuda() { makevars 'cuda/paper.o' && ! makevars '@' && log 'building with CUDA'; }

stand_in "$scratch/good" works
stand_in "$scratch/other" works
stand_in "$scratch/bad" broken

nothing() { configure ./configure && cpu_only && log 'nvcc was not found'; }
check "auto without nvcc builds for the CPU and says why" nothing
required() { ! configure ./configure --with-cuda=yes && log 'required'; }
check "--with-cuda=yes without nvcc stops" required
usually() { usual=$scratch/good; configure ./configure && with_cuda; found=$?; usual=$scratch/nowhere; return $found; }
check "the usual place is looked at after the PATH" usually
in_package() {
  mkdir -p "$scratch/rlib/cuda12.8" "$scratch/rlib/cuda13.0" "$scratch/rlib/cudaml"
  cp -r "$scratch/other" "$scratch/rlib/cuda12.8/toolkit" && cp -r "$scratch/good" "$scratch/rlib/cuda13.0/cuda" &&
    cp -r "$scratch/good" "$scratch/rlib/cudaml/cuda" &&
    configure R_LIBS="$scratch/rlib" ./configure && with_cuda && makevars "$scratch/rlib/cuda13.0/cuda/bin/nvcc" &&
    configure R_LIBS="$scratch/rlib" CUDA_HOME="$scratch/good" ./configure && makevars "$scratch/good/bin/nvcc"
}
check "R's own packages of CUDA are looked at last, the newest first" in_package

refused() { configure CUDA_HOME="$scratch/good" ./configure --with-cuda=no && cpu_only && header 'refused'; }
check "--with-cuda=no builds for the CPU" refused
refused_env() { configure GPUCHOLMOD_CUDA=no CUDA_HOME="$scratch/good" ./configure && cpu_only; }
check "GPUCHOLMOD_CUDA=no builds for the CPU" refused_env
refused_without() { configure CUDA_HOME="$scratch/good" ./configure --without-cuda && cpu_only; }
check "--without-cuda builds for the CPU" refused_without

argument() { configure CUDA_HOME="$scratch/other" ./configure --with-cuda-home="$scratch/good" && with_cuda && makevars "$scratch/good/bin/nvcc"; }
check "--with-cuda-home comes before CUDA_HOME" argument
variable() { configure GPUCHOLMOD_CUDA_HOME="$scratch/good" CUDA_HOME="$scratch/other" ./configure && makevars "$scratch/good/bin/nvcc"; }
check "GPUCHOLMOD_CUDA_HOME comes before CUDA_HOME" variable
wrong_home() { ! configure CUDA_HOME="$scratch/good" ./configure --with-cuda-home="$scratch/nowhere" && log 'cannot be used'; }
check "a --with-cuda-home that cannot be used stops" wrong_home
home_first() { configure CUDA_HOME="$scratch/good" CUDA_PATH="$scratch/other" ./configure && makevars "$scratch/good/bin/nvcc"; }
check "CUDA_HOME comes before CUDA_PATH" home_first
path_next() { configure CUDA_PATH="$scratch/good" NVCC="$scratch/other/bin/nvcc" ./configure && makevars "$scratch/good/bin/nvcc"; }
check "CUDA_PATH comes before NVCC" path_next
nvcc_next() { configure NVCC="$scratch/good/bin/nvcc" PATH="$scratch/other/bin:$scratch/bin" ./configure && makevars "$scratch/good/bin/nvcc"; }
check "NVCC comes before the PATH" nvcc_next
on_path() { configure PATH="$scratch/good/bin:$scratch/bin" ./configure && with_cuda && makevars "$scratch/good/bin/nvcc"; }
check "nvcc on the PATH is found" on_path
stale() { configure CUDA_HOME="$scratch/bad" CUDA_PATH="$scratch/good" ./configure && makevars "$scratch/good/bin/nvcc" && log 'nvcc stand-in: refused'; }
check "an nvcc that fails the probe is passed over, and its message shown" stale

targets() { configure CUDA_HOME="$scratch/good" ./configure && makevars 'arch=compute_75,code=sm_75' && ! makevars sm_120 && makevars 'arch=compute_75,code=compute_75' && header 'OLDEST 75'; }
check "targets are those that the toolkit knows, and PTX for the oldest" targets
own_targets() { configure CUDA_HOME="$scratch/good" ./configure --with-cuda-arch=90,80 && makevars 'code=sm_80 -gencode arch=compute_90,code=sm_90' && ! makevars sm_75 && header 'OLDEST 80'; }
check "--with-cuda-arch sets the targets" own_targets
no_ptx() { configure CUDA_HOME="$scratch/good" ./configure --with-cuda-arch=80,90-real && makevars 'code=sm_80 -gencode arch=compute_90,code=sm_90' && ! makevars code=compute && header 'ARCHITECTURES "sm_80 sm_90"'; }
check "--with-cuda-arch leaves PTX out" no_ptx
bad_targets() { ! configure CUDA_HOME="$scratch/good" ./configure --with-cuda-arch=hopper && log 'takes numbers'; }
check "--with-cuda-arch refuses what is no number" bad_targets
bad_switch() { ! configure ./configure --with-cuda=maybe && log 'auto, yes or no'; }
check "--with-cuda refuses what it does not know" bad_switch
more_flags() { configure CUDA_HOME="$scratch/good" GPUCHOLMOD_NVCC_FLAGS='-lineinfo' ./configure && makevars '-lineinfo'; }
check "GPUCHOLMOD_NVCC_FLAGS reach nvcc" more_flags

linked() {
  mkdir -p "$scratch/link/bin" && ln -sf "$scratch/good/bin/nvcc" "$scratch/link/bin/nvcc" &&
    configure CUDA_HOME="$scratch/link" ./configure && with_cuda
}
check "an nvcc that is a symbolic link is found" linked
stale_objects() {
  configure CUDA_HOME="$scratch/good" ./configure && touch "$scratch/copy/src/base/a.o" &&
    (cd "$scratch/copy" && env -i PATH="$scratch/bin" HOME="$HOME" ./configure --with-cuda=no) >"$scratch/log" 2>&1 &&
    [ ! -e "$scratch/copy/src/base/a.o" ] && cpu_only
}
check "objects of another variant are removed" stale_objects

one_symbol() {
  configure ./configure && makevars 'PKG_LIBS = -Wl,--version-script=exports.map -Wl,-z,nodelete ' && ! makevars '-Os'
}
check "one symbol is exported, and nothing is compiled for size" one_symbol
mkdir "$scratch/plain"
cat >"$scratch/plain/g++" <<CXX
#!/bin/sh
case "\$*" in *version-script*) exit 1 ;; esac
exec "$scratch/bin/g++" "\$@"
CXX
chmod +x "$scratch/plain/g++"
all_symbols() {
  configure PATH="$scratch/plain:$scratch/bin" ./configure && cpu_only && ! makevars 'version-script' &&
    log 'does not take -Wl,--version-script=src/exports.map'
}
check "where the compiler does not take that, it is left out, with a line" all_symbols

printf 'CXX17FLAGS = -g -O2 -Wall\n' >"$scratch/usual_flags"
printf 'CXX17FLAGS = -g3 -O0\n' >"$scratch/debug_flags"
line_numbers() {
  configure R_MAKEVARS_USER="$scratch/usual_flags" ./configure && makevars '-g1 -c cpu/plain.cpp -o cpu/plain.o' &&
    makevars '-g1 -c RcppExports.cpp'
}
check "R's usual flags describe line numbers alone to a debugger" line_numbers
other_flags() { configure R_MAKEVARS_USER="$scratch/debug_flags" ./configure && cpu_only && ! makevars '-g1'; }
check "other flags for a debugger are left alone" other_flags

# A stand-in mpicc, whose mpi.h lets the probe compile, or does not.
stand_in_mpi() { # $1 folder, $2 what mpi.h says
  mkdir -p "$1/bin" "$1/include"
  echo "$2" >"$1/include/mpi.h"
  printf '#!/bin/sh\necho "gcc -I%s/include -pthread -lm"\n' "$1" >"$1/bin/mpicc"
  chmod +x "$1/bin/mpicc"
}
stand_in_mpi "$scratch/mpi" "typedef int MPI_Comm, MPI_Request, MPI_Message;
inline int MPI_Comm_idup(int, int*, int*) { return 0; }
inline int MPI_Improbe(int, int, int, int*, int*, int*) { return 0; }
#define MPI_COMM_WORLD 0
#define MPI_ANY_SOURCE 0
#define MPI_STATUS_IGNORE nullptr"
stand_in_mpi "$scratch/old" "typedef int MPI_Comm;"

no_mpi() { configure ./configure && without_mpi && log 'mpicc was not found' && header 'MPI_CONFIGURED "mpicc was not found"'; }
check "auto without mpicc builds for one process and says why" no_mpi
mpi_required() { ! configure ./configure --with-mpi=yes && log 'MPI was required'; }
check "--with-mpi=yes without mpicc stops" mpi_required
mpi_on_path() { configure PATH="$scratch/mpi/bin:$scratch/bin" ./configure && with_mpi && makevars "-I$scratch/mpi/include" && makevars ' -lm'; }
check "mpicc on the PATH is found" mpi_on_path
mpi_named() { configure MPICC="$scratch/mpi/bin/mpicc" GPUCHOLMOD_MPI=yes ./configure && with_mpi; }
check "MPICC says which" mpi_named
mpi_refused() { configure MPICC="$scratch/mpi/bin/mpicc" ./configure --with-mpi=no && without_mpi && header 'MPI was refused'; }
check "--with-mpi=no builds for one process" mpi_refused
mpi_and_cuda() {
  configure MPICC="$scratch/mpi/bin/mpicc" NVCC="$scratch/good/bin/nvcc" ./configure && with_mpi &&
    makevars ' mpi_cuda/panels.o' && ! makevars cuda_absent
}
check "with CUDA and MPI there are panels on GPUs" mpi_and_cuda
cuda_alone() {
  configure NVCC="$scratch/good/bin/nvcc" ./configure --with-mpi=no && makevars 'mpi_cuda_absent/backend.o' &&
    ! makevars ' mpi_cuda/'
}
check "with CUDA alone there are none" cuda_alone
mpi_broken() { configure MPICC="$scratch/old/bin/mpicc" ./configure && without_mpi && log 'cannot use' && ! configure MPICC="$scratch/old/bin/mpicc" ./configure --with-mpi; }
check "an mpicc that fails the probe is not used" mpi_broken
mpi_switch() { ! configure ./configure --with-mpi=maybe && log 'auto, yes or no'; }
check "--with-mpi refuses what it does not know" mpi_switch

# Windows has no configure: what it compiles is written down.
objects_of() { # $1 a Makevars
  sed -e ':a' -e '/\\$/{N;s/\\\n//;ba' -e '}' "$1" | sed -n 's/^OBJECTS = *//p' | tr -s ' ' '\n' | sort
}
windows_objects() {
  configure ./configure --with-cuda=no &&
    [ "$(objects_of "$scratch/copy/src/Makevars")" = "$(objects_of "$here/src/Makevars.win")" ]
}
check "Windows compiles the same files as a build for the CPU only" windows_objects

cleaned() {
  configure CUDA_HOME="$scratch/good" ./configure && touch "$scratch/copy/src/base/a.o" "$scratch/copy/src/x.so" &&
    (cd "$scratch/copy" && ./cleanup) && [ ! -e "$scratch/copy/src/Makevars" ] &&
    [ ! -e "$scratch/copy/src/cuda_build.h" ] && [ ! -e "$scratch/copy/src/base/a.o" ] && [ ! -e "$scratch/copy/src/x.so" ]
}
check "cleanup removes what was built" cleaned

if [ -n "$real_nvcc" ]; then
  real() { configure NVCC="$real_nvcc" ./configure --with-cuda=yes && with_cuda; }
  check "the real nvcc passes the probe" real
else
  skipped=$((skipped + 1))
  echo "skip  the real nvcc: there is none"
fi

echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
