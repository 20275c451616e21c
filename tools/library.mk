# The core as a library for programs without R:
#
#   make -f tools/library.mk -j4 install PREFIX=/usr/local
#   make -f tools/library.mk -j4 install PREFIX=/usr/local CUDA=yes BUILD=build/gpu
#
# puts lib/libgpucholmod.a, lib/libgpucholmod.so, include/gpucholmod*.h, gpucholmod*.hpp and
# lib/pkgconfig/gpucholmod.pc there, for the CPU or with what runs on a GPU. It takes GNU make, a compiler of C++17,
# Eigen 3.3 or later (header files only; EIGEN=, where pkg-config does not know it) and some LAPACK and BLAS
# (LAPACK=); for GPUs the CUDA toolkit (CUDA_HOME=, and CUDA_ARCH=, the architectures to compile for, oldest first,
# which serves those to come as well). A build folder (BUILD=) is for one or the other.
PREFIX = /usr/local
BUILD = build/library
CXXFLAGS = -O2
EIGEN := $(shell pkg-config --variable=includedir eigen3 2>/dev/null || echo /usr/include)/eigen3
LAPACK = -llapack -lblas
CUDA = no
CUDA_HOME = /usr/local/cuda
CUDA_ARCH = 80 90

root := $(patsubst %/tools/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
version := $(shell sed -n 's/^Version: //p' $(root)/DESCRIPTION)
ifeq ($(CUDA),yes)
  cuda := cuda
  oldest := $(firstword $(CUDA_ARCH))
  built := 'CONFIGURED "built as a library, with CUDA"' 'ARCHITECTURES "$(CUDA_ARCH:%=sm_%)"' 'OLDEST $(oldest)' 'LIBRARIES "$(CUDA_HOME)/lib64"'
  cuda_libraries := -L$(CUDA_HOME)/lib64 -lcudart_static -ldl -lrt
else ifeq ($(CUDA),no)
  cuda := cuda_absent
  built := 'CONFIGURED "built as a library, for the CPU"' 'ARCHITECTURES ""' 'OLDEST 0' 'LIBRARIES ""'
else
  $(error CUDA takes yes or no, not '$(CUDA)')
endif
sources := $(foreach folder,base c cpu modify paper stream $(cuda),$(wildcard $(root)/src/$(folder)/*.cpp))
kernels := $(wildcard $(root)/src/$(cuda)/*.cu)
objects := $(sources:$(root)/src/%.cpp=$(BUILD)/%.o) $(kernels:$(root)/src/%.cu=$(BUILD)/%.o)
libraries = $(cuda_libraries) $(LAPACK) -lpthread
cpp_headers := $(wildcard $(root)/inst/include/*.hpp)
c_headers = $(addprefix $(root)/inst/include/,gpucholmod.h gpucholmod_batch.h gpucholmod_matrix.h)
flags = -std=c++17 -fPIC -fvisibility=hidden -ffp-contract=off -DGPUCHOLMOD_VISIBLE \
  -I$(BUILD) -I$(root)/src -I$(root)/inst/include -isystem $(EIGEN) $(if $(oldest),-isystem $(CUDA_HOME)/include)
nvcc_flags = -std=c++17 -O2 -Xcompiler -fPIC,-fvisibility=hidden $(foreach a,$(CUDA_ARCH),-gencode arch=compute_$a,code=sm_$a) \
  -gencode arch=compute_$(oldest),code=compute_$(oldest) -I$(BUILD) -I$(root)/src

# GCC takes what its own intrinsics leave undefined on purpose for a mistake. Clang has not heard of one of these.
$(BUILD)/cpu/avx512.o: flags += -Wno-unknown-warning-option -Wno-uninitialized -Wno-maybe-uninitialized

all: $(BUILD)/libgpucholmod.a $(BUILD)/libgpucholmod.so $(BUILD)/gpucholmod.pc

# What configure writes for the R package.
$(BUILD)/cuda_build.h:
	@mkdir -p $(@D)
	printf '#define GPUCHOLMOD_CUDA_%s\n' $(built) >$@

$(BUILD)/%.o: $(root)/src/%.cpp $(BUILD)/cuda_build.h
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(flags) -MMD -MP -c $< -o $@

$(BUILD)/%.o: $(root)/src/%.cu $(BUILD)/cuda_build.h
	@mkdir -p $(@D)
	$(CUDA_HOME)/bin/nvcc $(nvcc_flags) -MD -MP -c $< -o $@

$(BUILD)/libgpucholmod.a: $(objects)
	rm -f $@
	$(AR) rcs $@ $(objects)

$(BUILD)/libgpucholmod.so: $(objects)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -shared $(objects) $(libraries) -o $@

$(BUILD)/gpucholmod.pc: $(root)/DESCRIPTION
	@mkdir -p $(@D)
	printf '%s\n' 'prefix=$(PREFIX)' 'Name: gpucholmod' 'Description: Rank-k modification of dense Cholesky factors' 'Version: $(version)' \
	  'Cflags: -I$${prefix}/include' 'Libs: -L$${prefix}/lib -lgpucholmod' 'Libs.private: $(libraries) -lstdc++ -lm' >$@

install: all
	mkdir -p $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	cp $(BUILD)/libgpucholmod.a $(BUILD)/libgpucholmod.so $(DESTDIR)$(PREFIX)/lib
	cp $(BUILD)/gpucholmod.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig
	cp $(cpp_headers) $(c_headers) $(DESTDIR)$(PREFIX)/include

# Programs that use the library, on a GPU where it was built with CUDA.
check: $(BUILD)/program_c $(BUILD)/program_cpp
	$(BUILD)/program_c
	$(BUILD)/program_cpp $(if $(oldest),gpu)

$(BUILD)/program_c: $(root)/tests/library.c $(BUILD)/libgpucholmod.a
	$(CC) -std=c99 -I$(root)/inst/include $^ $(libraries) -lstdc++ -lm -o $@
$(BUILD)/program_cpp: $(root)/tests/library.cpp $(cpp_headers) $(BUILD)/libgpucholmod.a
	$(CXX) -std=c++17 -O1 -I$(root)/inst/include $(filter %.cpp %.a,$^) $(libraries) -o $@

# Times of the C interface beside Eigen's, which is compiled for this machine.
bench: $(BUILD)/bench_c
	$(BUILD)/bench_c $(ARGS)
$(BUILD)/bench_c: $(root)/inst/bench/c_interface.cpp $(wildcard $(root)/inst/include/*.h) $(BUILD)/libgpucholmod.a
	$(CXX) -std=c++17 -O3 -march=native -I$(root)/inst/include -isystem $(EIGEN) $(filter %.cpp %.a,$^) $(libraries) -o $@

# Functions for Octave: $(BUILD)/octave is to be on its path. Octave's linker finds the C++ library itself.
octave_sources := $(wildcard $(root)/inst/octave/*.cpp)
octave: $(BUILD)/octave/gpucholmod.oct
	rm -f $(BUILD)/octave/*.m
	cp $(root)/inst/octave/*.m $(root)/inst/octave/PKG_ADD $(BUILD)/octave

$(BUILD)/octave/gpucholmod.oct: $(octave_sources:$(root)/inst/%.cpp=$(BUILD)/%.o) $(BUILD)/libgpucholmod.a
	mkoctfile $(filter %.o,$^) $(abspath $(BUILD)/libgpucholmod.a) $(libraries) -o $@
$(BUILD)/octave/%.o: $(root)/inst/octave/%.cpp $(root)/inst/octave/arguments.h $(wildcard $(root)/inst/include/*.h)
	@mkdir -p $(@D)
	mkoctfile -c -std=gnu++17 -I$(root)/inst/include $< -o $@

-include $(objects:.o=.d)
.PHONY: all install check bench octave
