#pragma once

#include "modify/request.h"

namespace gpucholmod {

/// Where a factor is, and where the modified one is to be.
enum class Where { memory = 1, in_place = 2, file = 4, gpu = 8, held = 16 };  ///< gpu, held: in a HeldFactor

/// The way of a factor through a call: modify/modify.cpp has a function for each.
enum class Route {
  whole,          ///< all of R at once, in the CPU's memory
  paper_panels,   ///< Walder's: diagonal blocks on the CPU, what is to their right in panels through a device
  column_panels,  ///< in panels of whole columns through a device, which may be the CPU
  on_gpu          ///< R stays in the memory of a GPU
};

/// What a method is. To add one: a line here, its name in R/request.R, and, if its route or algorithm is new, a case in
/// modify/modify.cpp.
struct MethodFacts {
  Method method;
  const char* name;
  Route route;
  bool on_cpu, on_cuda;
  bool carries;             ///< whether right-hand sides can come along
  Algorithm cpu, cuda;  ///< where it runs there
  int places;           ///< those of Where that it can handle
};

namespace methods {
constexpr int memory = int(Where::memory), in_place = int(Where::in_place), file = int(Where::file),
              gpu = int(Where::gpu), held = int(Where::held);
constexpr Algorithm rotations = Algorithm::rotations, householder = Algorithm::householder,
                    unscaled = Algorithm::unscaled, refactor = Algorithm::refactor;

constexpr MethodFacts all[] = {
    {Method::blocked, "blocked", Route::whole, true, false, true, householder, householder, memory | in_place | held},
    {Method::refactor, "refactor", Route::whole, true, false, false, refactor, refactor, memory},
    {Method::reference, "reference", Route::whole, true, false, false, rotations, rotations, memory},
    {Method::panel, "panel", Route::paper_panels, true, true, false, rotations, rotations, memory},
    {Method::stream, "stream", Route::column_panels, true, true, true, householder, unscaled, memory | in_place | file},
    {Method::resident, "resident", Route::column_panels, false, true, true, unscaled, unscaled,
     memory | in_place | file},
    {Method::persistent, "persistent", Route::on_gpu, false, true, true, unscaled, unscaled, gpu},
    {Method::stepwise, "stepwise", Route::on_gpu, false, true, true, householder, householder, gpu},
};
}  // namespace methods

/// Of a method that is resolved.
constexpr const MethodFacts& facts(Method method) { return methods::all[int(method) - 1]; }

}  // namespace gpucholmod
