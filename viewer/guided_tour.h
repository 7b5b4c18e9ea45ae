// The tour of the main window: its steps, from the memory plan to the export of a picture.
#pragma once

#include <tapedeck/viewer/start/tour.h>

namespace tapedeck::viewer {

class MainWindow;

// Each step asks the person to do one thing, and sees when it is done. A reader needs about two minutes.
std::vector<TourStep> tour_steps(MainWindow& window);

}  // namespace tapedeck::viewer
