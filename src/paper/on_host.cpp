#include "paper/host_executor.h"

namespace gpucholmod::paper {

template <class T>
Work on_host(MatrixView<T> R, MatrixView<const T> V, Sign sign, double device_memory, const Shape& shape,
             const Poll& poll) {
  const Footprint<T> footprint(R.cols, V.cols, shape);
  footprint.require_within(device_memory);
  HostExecutor<T> executor(footprint, sign, shape);
  Work work = drive(R, V, sign, shape, executor, poll);
  work.device_bytes = footprint.bytes();
  return work;
}
template Work on_host(MatrixView<double>, MatrixView<const double>, Sign, double, const Shape&, const Poll&);
template Work on_host(MatrixView<float>, MatrixView<const float>, Sign, double, const Shape&, const Poll&);

}  // namespace gpucholmod::paper
