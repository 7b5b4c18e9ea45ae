// The first stage of planning: the graph that is planned, made from the captured graph.
#pragma once

#include <tapedeck/capture/passes/pass_runner.h>
#include <tapedeck/capture/plan/sharing.h>
#include <tapedeck/engine/ir/graph.h>

namespace tapedeck TAPEDECK_API {

// Without what is dead, known or computed twice: every pass that changes no bit, in the order that suits them (fast_math if the
// runner has it). A runner with a lower level leaves passes out.
Graph simplify(Graph graph, PassRunner* passes);

// Verified, named, without what is dead, known or computed twice, and with the copies that updates and outputs need. Of the
// sharing rules add_to and updates show here.
Graph prepare(const Graph& captured, PassRunner* passes, Sharing sharing = Sharing::all);

}  // namespace TAPEDECK_API
