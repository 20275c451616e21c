#include "segment_pass.h"

namespace gpucholmod::block_columns {

extern template void run_segment_on_host<8, Card86Single>(const Segment<float, Order::forward, float>&, const Disturb&);
extern template void run_segment_on_host<16, Card86Single>(const Segment<float, Order::forward, float>&,
                                                           const Disturb&);
extern template void run_segment_on_host<32, Card86Single>(const Segment<float, Order::forward, float>&,
                                                           const Disturb&);

template void run_segment_on_host<8, Card90>(const Segment<float, Order::forward>&, const Disturb&);
template void run_segment_on_host<16, Card90>(const Segment<float, Order::forward>&, const Disturb&);
template void run_segment_on_host<32, Card90>(const Segment<float, Order::forward>&, const Disturb&);
template void run_segment_on_host<8, Card90>(const Segment<float, Order::back>&, const Disturb&);
template void run_segment_on_host<16, Card90>(const Segment<float, Order::back>&, const Disturb&);
template void run_segment_on_host<32, Card90>(const Segment<float, Order::back>&, const Disturb&);

}  // namespace gpucholmod::block_columns

namespace gpucholmod::test {

template std::unique_ptr<HostPass<float>> host_pass(const double*, index_t, const block_columns::PassColumns&, index_t,
                                                    int, Simulated);
template SegmentsResult<float> run_segments(const Problem<double>&, const SegmentsRun&);

}  // namespace gpucholmod::test
