// The value that a graph calls by a name, for tests that change or look at one value.
#pragma once

#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/engine/text/text.h>

#include <gtest/gtest.h>

#include <string>

namespace tapedeck::testing {

// The test fails if there is no such value, and goes on with value 0. O(values).
inline ValueId value_named(const Graph& graph, const std::string& name) {
  for (ValueId v = 0; v < graph.value_count(); ++v)
    if (graph.value_name(v) == name) return v;
  ADD_FAILURE() << "no %" << name << " in\n" << print(graph);
  return 0;
}

}  // namespace tapedeck::testing
