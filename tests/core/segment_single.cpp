#include "segment_grid.h"

/// Segments in single precision, on a simulated card that computes with floats.
namespace gpucholmod::block_columns {

template void run_segment_on_host<8, Card86Single>(const Segment<float, Order::forward, float>&, const Disturb&);
template void run_segment_on_host<16, Card86Single>(const Segment<float, Order::forward, float>&, const Disturb&);
template void run_segment_on_host<32, Card86Single>(const Segment<float, Order::forward, float>&, const Disturb&);

}  // namespace gpucholmod::block_columns
