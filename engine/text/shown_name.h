// The name of a value as people read it.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

// "%fc1.matmul"; for a value without a name that is computed again, the name of what it repeats: "%fc1.matmul again"; else its
// number, "%39". Messages about plans and the viewer show values so; the text form of a graph does not, because two clones of
// one value have one such name.
std::string shown_name(const Graph& graph, ValueId v);

}  // namespace TAPEDECK_API
