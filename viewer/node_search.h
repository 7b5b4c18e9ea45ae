// Finds nodes and modules of the shown plan by typed letters, and shows them in the graph.
#pragma once

#include <tapedeck/viewer/command_palette.h>

namespace tapedeck::viewer {

// The modules and nodes that fit, the best first; a node by the name of its result, by its op or by its module.
std::vector<PaletteEntry> found_nodes(const MainWindow& window, const std::string& typed);
void show_node_search(MainWindow& window);

}  // namespace tapedeck::viewer
