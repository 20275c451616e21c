#pragma once

#include "base/storage.h"
#include "stream/device.h"

namespace gpucholmod::stream {

/// The modification of a factor that goes through a device in panels of columns; n, k >= 1. T is what is computed in, S
/// what is stored. `overwrites`: out takes the place of R; whatever can be wrong with R, or with a downdate, is then
/// found out before anything is written. With a failing pivot or after a throw, what `out` holds is unspecified.
template <class T, class S>
Work run(const Source<S>& R, const S* V, Sink<S>& out, const Task& task, bool overwrites,
         const MakeDevice<T>& make_device, const Poll& poll);

}  // namespace gpucholmod::stream
