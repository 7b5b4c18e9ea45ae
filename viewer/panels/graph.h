// The graph of the step: forward goes down on the left, backward goes up on the right, and what belongs together stands in one
// row. Modules open and close: by a double click, by a click on + or -, by keys. The layout is made in the background when the
// panel is seen, and what was clicked stays under the mouse. A click selects in all panels.
//
// A node with regions (a loop, a branch, a fused node) opens in the same ways: the panel then draws the graph of a region, by
// the region's own plan, with the way back above it. A selection in there is the panel's own.
#pragma once

#include <tapedeck/viewer/graph/graph_scene.h>
#include <tapedeck/viewer/panels/graph_picture.h>
#include <tapedeck/viewer/panels/graph_view.h>
#include <tapedeck/viewer/panels/plot.h>
#include <tapedeck/viewer/planning/awaited_task.h>
#include <tapedeck/viewer/saved/saved_session.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace tapedeck::viewer {

class GraphPanel : public PicturePanel {
 public:
  explicit GraphPanel(Session& session);

  void draw(float width, float height) override;
  void closed() override;
  void finish() override;  // waits for the layout
  void stop() override;
  bool move_view(ViewMove move) override;
  void write_csv(const std::string& path) override;  // the boxes; throws FileError

  // The functions that commands call. Each waits until the layout that was asked for before is there.
  void toggle();            // the module that was clicked last, or the one around the selection
  void step_level(int by);  // opens all closed modules that are shown, or closes the innermost open ones
  void open_as_at_first();
  void reveal_selection();  // opens the modules around the selected node, and shows it in the middle
  void reveal_module(const std::string& path);

  // Draws a region of a node of the step.
  void enter(NodeId n, int region);
  // Draws the last region of the selected node; where none is selected that has regions, and a region is drawn, the next region
  // of its node. False if there is nothing to draw.
  bool enter_selection();
  bool leave(std::size_t depth);  // back to the step (0), or to a region on the way; false if it is drawn already
  const RegionPath& inside() const { return inside_; }
  std::size_t depth() const { return inside_.size(); }

  // The open modules, as a session keeps them; none: as at first.
  const OpenModules& open_modules() const { return open_; }
  void set_open_modules(OpenModules open);
  // The region that is drawn with the selection in it, and the part of the graph in view, as a session keeps them. The ranges
  // of the view are those of GraphView::saved(); none: nobody moved the picture.
  SavedRegion saved_region() const;
  void restore_region(const SavedRegion& region);

  // For tests.
  bool settled() const;  // the layout of what was asked for is shown, and nothing waits for it
  const GraphScene* scene() const { return scene_.get(); }  // null until the first layout is there
  const GraphView& view() const { return view_; }
  const GraphPicture& picture() const { return picture_; }
  std::optional<ImVec2> place_of(BoxId box) const;                // the middle of a box on the canvas, if it is in view
  BoxId box_of_module(const std::string& path, Lane lane) const;  // kNone if it is not shown

 private:
  // The plan, the measurement and the open modules that a layout is made of.
  struct Wanted {
    std::uint64_t model = 0, measured = 0;  // serial numbers
    RegionPath inside;
    OpenModules open;
    bool operator==(const Wanted&) const = default;
  };
  struct Result {
    std::shared_ptr<const GraphScene> scene;
    std::string error;
  };
  // A box that must stay where it is when the next layout is there.
  struct Anchor {
    std::string module;
    Lane lane = Lane::forward;
    ImVec2 place, mouse;  // of its upper left corner, and of the mouse
    bool has_mouse = false;
  };

  Wanted wanted() const;
  void start();
  void when_settled(std::function<void()> action);
  void run_waiting();
  void toggle_now();
  void step_level_now(int by);
  void reveal_selection_now();
  void reveal_module_now(const std::string& path);
  void arrive();
  void take(std::shared_ptr<const GraphScene> scene);
  void change_open(std::set<std::string> open);
  void anchor_at(BoxId box, bool with_mouse);
  void hold_anchor();
  void follow_mouse();
  void wheel();
  void react(const GraphPicture::Hit& hit);
  void click(const GraphPicture::Hit& hit);
  void tell_about(const GraphPicture::Hit& hit) const;
  void toggle_module(ModuleId module, Lane lane, bool with_mouse);
  void show_revealed();
  void colour_nodes();
  bool is_laid_out() const;
  bool is_fresh() const;  // the scene is of the shown plan and the wanted region
  std::string legend_text() const;
  std::string inside_text() const;  // about the region that is drawn
  float draw_way(float y, float width);
  void go_inside(RegionPath path);
  void enter_box(NodeId n);  // of the scene
  bool show_region(int region);
  void tell_about_regions(NodeId n) const;
  void show_restored();
  bool is_inside() const { return !inside_.empty(); }
  OpenModules& open_now() { return is_inside() ? open_inside_ : open_; }
  const OpenModules& open_now() const { return is_inside() ? open_inside_ : open_; }
  const Selection& selection() const { return is_inside() ? selected_inside_ : session_.selection(); }
  void select(ValueId v, NodeId n);
  void hover(ValueId v);

  GraphPicture picture_;
  GraphView view_;
  std::shared_ptr<const GraphScene> scene_;
  Wanted shown_, asked_;
  std::string error_;
  OpenModules open_;
  RegionPath inside_;                    // the region that is drawn; empty: the step
  OpenModules open_inside_;              // of that region
  Selection selected_inside_;            // of that region
  std::optional<SavedRegion> restored_;  // its selection and its view wait for its layout
  std::vector<GraphView> outside_;       // the views of the step and of the regions on the way
  GraphMarks marks_;
  std::string chosen_;  // the path of the module that was clicked last; empty: none
  std::optional<Anchor> anchor_;
  std::deque<std::function<void()>> waiting_;  // for a layout
  NodeId reveal_node_ = kNone;                 // to be shown in the middle once its layout is there
  std::string reveal_module_;
  std::vector<Colour> node_colours_;
  const void* coloured_ = nullptr;  // the scene of node_colours_
  ColourBy coloured_by_ = ColourBy::role;
  Theme coloured_theme_ = Theme::dark;
  bool pressed_ = false, dragging_ = false, double_clicked_ = false, hovers_ = false;
  AwaitedTask<Result> task_;  // the last member: its destructor joins the thread first
};

}  // namespace tapedeck::viewer
