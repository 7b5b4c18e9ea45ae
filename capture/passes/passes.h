// Every pass, one line each. A pass is a plain function from graph to graph; none changes the bits of any result.
#pragma once

#include <tapedeck/engine/graph.h>

namespace tapedeck TAPEDECK_API {

Graph dead_code(Graph graph);      // drops nodes whose results nobody needs
Graph cse(Graph graph);            // computes equal things once
Graph insert_copies(Graph graph);  // gives every output and every updated state bytes that the plan can write

}  // namespace TAPEDECK_API
