#include "segment_grid.h"

/// Segments on simulated cards without clusters.
namespace gpucholmod::block_columns {

template void run_segment_on_host<8, Card80>(const Segment<double, Order::forward>&, const Disturb&);
template void run_segment_on_host<16, Card80>(const Segment<double, Order::forward>&, const Disturb&);
template void run_segment_on_host<8, Card86>(const Segment<double, Order::forward>&, const Disturb&);
template void run_segment_on_host<16, Card86>(const Segment<double, Order::forward>&, const Disturb&);
template void run_segment_on_host<8, Card80>(const Segment<double, Order::back>&, const Disturb&);
template void run_segment_on_host<8, Card86>(const Segment<double, Order::back>&, const Disturb&);

}  // namespace gpucholmod::block_columns
