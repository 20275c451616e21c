#pragma once

#include "base/storage.h"
#include "stream/device.h"

namespace gpucholmod::stream {

/// Modifies a factor that is sent through a device in panels of columns; n, k >= 1. T is the scalar of the computation,
/// S the scalar that is stored. If `overwrites` is true, `out` takes the place of R; then everything that can be wrong
/// with R, or with a downdate, is found out before anything is written. After a failing pivot or a throw, the contents
/// of `out` are unspecified.
template <class T, class S>
Work run(const Source<S>& R, const S* V, Sink<S>& out, const Task& task, bool overwrites,
         const MakeDevice<T>& make_device, const Poll& poll);

}  // namespace gpucholmod::stream
