# The core as a library for programs without R, on a CPU:
#
#   make -f tools/library.mk -j4 install PREFIX=/usr/local
#
# puts lib/libgpucholmod.a, lib/libgpucholmod.so, include/gpucholmod.h and lib/pkgconfig/gpucholmod.pc there. It takes GNU make, a compiler of
# C++17, Eigen 3.3 or later (header files only; EIGEN=, where pkg-config does not know it) and some LAPACK and BLAS (LAPACK=).
PREFIX = /usr/local
BUILD = build/library
CXXFLAGS = -O2
EIGEN := $(shell pkg-config --variable=includedir eigen3 2>/dev/null || echo /usr/include)/eigen3
LAPACK = -llapack -lblas

root := $(patsubst %/tools/,%,$(dir $(abspath $(lastword $(MAKEFILE_LIST)))))
version := $(shell sed -n 's/^Version: //p' $(root)/DESCRIPTION)
sources := $(foreach folder,base c cpu modify stream cuda_absent,$(wildcard $(root)/src/$(folder)/*.cpp))
objects := $(sources:$(root)/src/%.cpp=$(BUILD)/%.o)
flags = -std=c++17 -fPIC -fvisibility=hidden -ffp-contract=off -DGPUCHOLMOD_EXPORT='__attribute__((visibility("default")))' \
  -I$(root)/src -I$(root)/inst/include -I$(BUILD) -isystem $(EIGEN)

all: $(BUILD)/libgpucholmod.a $(BUILD)/libgpucholmod.so $(BUILD)/gpucholmod.pc

# What configure writes for the R package.
$(BUILD)/cuda_build.h:
	@mkdir -p $(@D)
	printf '#define GPUCHOLMOD_CUDA_%s\n' 'CONFIGURED "built as a library, for the CPU"' 'ARCHITECTURES ""' 'OLDEST 0' 'LIBRARIES ""' >$@

$(BUILD)/%.o: $(root)/src/%.cpp $(BUILD)/cuda_build.h
	@mkdir -p $(@D)
	$(CXX) $(CXXFLAGS) $(flags) -MMD -MP -c $< -o $@

$(BUILD)/libgpucholmod.a: $(objects)
	rm -f $@
	$(AR) rcs $@ $(objects)

$(BUILD)/libgpucholmod.so: $(objects)
	$(CXX) $(CXXFLAGS) $(LDFLAGS) -shared $(objects) $(LAPACK) -lpthread -o $@

$(BUILD)/gpucholmod.pc: $(root)/DESCRIPTION
	@mkdir -p $(@D)
	printf '%s\n' 'prefix=$(PREFIX)' 'Name: gpucholmod' 'Description: Rank-k modification of dense Cholesky factors' 'Version: $(version)' \
	  'Cflags: -I$${prefix}/include' 'Libs: -L$${prefix}/lib -lgpucholmod' 'Libs.private: $(LAPACK) -lpthread -lstdc++ -lm' >$@

install: all
	mkdir -p $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	cp $(BUILD)/libgpucholmod.a $(BUILD)/libgpucholmod.so $(DESTDIR)$(PREFIX)/lib
	cp $(BUILD)/gpucholmod.pc $(DESTDIR)$(PREFIX)/lib/pkgconfig
	cp $(root)/inst/include/gpucholmod.h $(DESTDIR)$(PREFIX)/include

# Functions for Octave: $(BUILD)/octave is to be on its path. MATLAB's mex takes the same source; that has not been tried.
octave: $(BUILD)/octave/gpucholmod_mex.mex
	cp $(root)/inst/octave/*.m $(BUILD)/octave

$(BUILD)/octave/gpucholmod_mex.mex: $(root)/inst/octave/gpucholmod_mex.c $(root)/inst/include/gpucholmod.h $(BUILD)/libgpucholmod.a
	@mkdir -p $(@D)
	mkoctfile --mex -I$(root)/inst/include $< $(abspath $(BUILD)/libgpucholmod.a) $(LAPACK) -lpthread -lstdc++ -o $@

-include $(objects:.o=.d)
.PHONY: all install octave
