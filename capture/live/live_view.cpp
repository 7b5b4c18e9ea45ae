#include <tapedeck/capture/live/live_view.h>

#include <tapedeck/capture/live/live_hub.h>

namespace tapedeck {

using live::Hub;

bool LiveView::connected() const { return Hub::of_process().connected(); }
std::string LiveView::folder() const { return Hub::of_process().folder(); }
void LiveView::capture_step() const { Hub::of_process().ask(live::Request::capture_step); }
void LiveView::disconnect() const { Hub::of_process().disconnect(); }

LiveView connect_viewer(const LiveViewOptions& options) {
  Hub::of_process().connect({options.folder, options.name});
  return {};
}

}  // namespace tapedeck
