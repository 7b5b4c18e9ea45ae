// The filter, the order and the columns of a table, as a session and the settings keep them.
#pragma once

#include <tapedeck/viewer/saved/saved_session.h>

#include <string>

namespace tapedeck::viewer {

class TablePanel;

// `scale`: pixels per unit of the window.
SavedTable table_state(const std::string& name, double scale, TablePanel& panel);
// Columns that the table does not have are left out, and columns that are not named stay behind those that are.
void restore_table(const SavedTable& saved, double scale, TablePanel& panel);

}  // namespace tapedeck::viewer
