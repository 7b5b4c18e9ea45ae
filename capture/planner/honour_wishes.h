// The wishes of the user (plan/wishes.h) as facts that every strategy obeys.
//
// A value to keep: its node is never run again (Facts::can_repeat). A view has the bytes of the value that it looks at, so that
// value is kept. A value to compute again: recompute_wished.h writes its clones into the graph, and no strategy may keep a copy
// across the place where the wish counts (Facts::may_keep).
#pragma once

#include <tapedeck/capture/plan/wishes.h>
#include <tapedeck/capture/planner/facts/facts.h>

#include <vector>

namespace tapedeck {

// Notes in the facts which nodes are never run again, and which values are given up. The facts may be of any order of the
// prepared graph.
void note_wishes(const std::vector<Wish>& wishes, Facts* facts);

// Throws UsageError if a pattern names nothing, in the prepared graph as well as in the graph that was captured: a pass may
// have left a value out.
void check_wishes_name_something(const std::vector<Wish>& wishes, const Graph& captured, const Graph& prepared);

}  // namespace tapedeck
