#pragma once

#include "modify/request.h"

namespace gpucholmod {

/// The places where a factor is, and where the modified factor is to be.
enum class Where { memory = 1, in_place = 2, file = 4, gpu = 8, held = 16 };  ///< gpu, held: a HeldFactor

/// The ways of a factor through a call; modify/modify.cpp has a function for each.
enum class Route {
  whole,          ///< all of R at once, in the CPU's memory
  paper_panels,   ///< Walder's panels: diagonal blocks on the CPU, the panels on their right through a device
  column_panels,  ///< panels of whole columns, through a device, which may be the CPU
  on_gpu          ///< R in the memory of a GPU, where R stays
};

/// Describes a method. To add a method: a line here, its name in R/request.R, and, if its route or algorithm is new, a
/// case in modify/modify.cpp.
struct MethodFacts {
  Method method;
  const char* name;
  Route route;
  bool on_cpu, on_cuda;
  bool carries;             ///< True if right-hand sides can be modified along
  Algorithm cpu, cuda;  ///< algorithms on the CPU and on a GPU
  int places;           ///< sum of the values of Where that the method can handle
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

/// Returns the facts of a method, which must be resolved.
constexpr const MethodFacts& facts(Method method) { return methods::all[int(method) - 1]; }

}  // namespace gpucholmod
