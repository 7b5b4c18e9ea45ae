// Draws a scene of the graph into a part of the canvas: frames of open modules, edges, boxes, and the outlines of what is
// selected. It walks from the root's frames down, and only through frames that are in view and large enough, so a frame of the
// picture costs as much as there is to see, however large the graph is. A frame that is too small is drawn as a closed module.
#pragma once

#include <tapedeck/viewer/graph/graph_scene.h>
#include <tapedeck/viewer/panels/graph_view.h>
#include <tapedeck/viewer/panels/plot.h>
#include <tapedeck/viewer/plan/selection.h>

#include <vector>

namespace tapedeck::viewer {

// The selection and the module that the picture marks.
struct GraphMarks {
  Selection selection;      // of the scene's plan
  ModuleId module = kNone;  // the module that was clicked last
  Lane module_lane = Lane::forward;
};

class GraphPicture {
 public:
  // `colours` by node.
  void draw(const GraphScene& scene, const GraphView& view, const std::vector<Colour>& colours, const GraphMarks& marks);

  void forget() {  // what the last frame showed
    shown_.clear();
    wires_.clear();
  }

  // The box or the edge under a point in the last frame.
  struct Hit {
    BoxId box = kNone;
    bool on_sign = false;  // the + or - of a module
    std::int32_t edge = kNone;
  };
  Hit hit(const ImVec2& at) const;
  // Of the last frame.
  std::size_t drawn_boxes() const { return shown_.size(); }
  std::size_t drawn_edges() const { return wires_.size(); }
  ImVec2 place_of_sign(const GraphScene& scene, BoxId box) const;

 private:
  struct Shown {
    BoxId box;
    CanvasBox at;
    bool is_frame;  // its content is drawn, too
  };
  struct Wire {  // an edge that was drawn
    std::int32_t edge;
    std::size_t first, points;
  };
  CanvasBox place(const GraphBox& box) const;
  bool in_view(const CanvasBox& box) const;
  void walk(const GraphScene& scene);
  void draw_lanes(const GraphScene& scene) const;
  void draw_frame(const GraphScene& scene, const Shown& shown) const;
  void draw_title(const GraphScene& scene, const Shown& shown) const;
  void draw_module(const GraphScene& scene, const Shown& shown) const;
  void draw_leaf(const GraphScene& scene, const Shown& shown, const std::vector<Colour>& colours) const;
  void draw_edges(const GraphScene& scene);
  void draw_edge(const GraphScene& scene, const GraphEdge& edge, Colour colour, float thickness);
  void draw_repeats(const GraphScene& scene) const;
  void draw_marked_edges(const GraphScene& scene, const GraphMarks& marks);
  void draw_marks(const GraphScene& scene, const GraphMarks& marks) const;
  void outline(const GraphScene& scene, BoxId box, Colour colour, float thickness) const;

  GraphView view_;
  std::vector<Shown> shown_;
  std::vector<ModuleId> open_;  // the modules whose frames were walked through
  std::vector<Wire> wires_;
  std::vector<ImVec2> points_;
};

}  // namespace tapedeck::viewer
