// Converts call sites to notes of a graph and back. A note reads "train.cpp:12".
#pragma once

#include <tapedeck/engine/ir/graph.h>

namespace tapedeck {

Name site_note(Site site);           // the file name without its folder, and the line; empty if the site is unknown
Site site_of(const Origin& origin);  // the place that the note names; line 0 if the node has no such note

}  // namespace tapedeck
