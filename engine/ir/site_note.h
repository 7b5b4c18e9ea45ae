// Call sites as notes of graphs: "train.cpp:12".
#pragma once

#include <tapedeck/engine/ir/graph.h>

namespace tapedeck {

Name site_note(Site site);           // file name without its folder, and line; empty if unknown
Site site_of(const Origin& origin);  // the place a note names; line 0 if it names none

}  // namespace tapedeck
