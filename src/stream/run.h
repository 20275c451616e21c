#pragma once

#include "modify/request.h"
#include "base/storage.h"

namespace gpucholmod::stream {

/// The stream method for a resolved request (outcome.backend and .method), n, k >= 1; see modify_stored() in
/// modify/modify.h. S is what the factor is stored in, request.precision what is computed in.
template <class S>
void run(const Source<S>& R, const S* V, Sink<S>& out, const Request& request, const Poll& poll, bool overwrites,
         Outcome& outcome);

}  // namespace gpucholmod::stream
