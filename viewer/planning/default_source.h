// Where the windows of this process get their plans from.
#pragma once

#include <tapedeck/viewer/planning/plan_source.h>

namespace tapedeck::viewer {

// search_plans, unless something else was assigned. The tests assign a source that searches equal small problems once. Assign
// before the first window is made: the threads of windows call it.
MakeSource& default_source();

}  // namespace tapedeck::viewer
