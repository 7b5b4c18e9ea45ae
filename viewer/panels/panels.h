// The table of panels. The docks of the window, its menu, the option --panel and the help read it and nothing else.
#pragma once

#include <tapedeck/viewer/model/session.h>

#include <memory>
#include <string>
#include <vector>

class QWidget;

namespace tapedeck::viewer {

class PicturePanel;

// Where a panel stands when the window opens for the first time.
enum class PanelPlace : std::uint8_t {
  centre,
  below,   // below the centre
  beside,  // right of the centre, below the panels that are there
  behind   // a tab behind the panel before it in the table
};

struct Panel {
  const char* name;      // as --panel takes it
  const char* title;     // of its dock, and in the menu
  const char* sentence;  // says what it shows: of its tab, and in the sheet of keys
  PanelPlace place;
  int width, height;  // of the dock at first; 0: no wish
  // Exactly one of the two: a picture, or a table of Qt that its parent owns.
  std::unique_ptr<PicturePanel> (*picture)(Session&) = nullptr;
  QWidget* (*table)(Session&) = nullptr;
};

const std::vector<Panel>& all_panels();            // in the order in which the window adds them; one is in the centre
const Panel* find_panel(const std::string& name);  // null if there is none
std::string panel_list();                          // "memory, curve, nodes": for people

}  // namespace tapedeck::viewer
