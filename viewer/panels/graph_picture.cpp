#include <tapedeck/viewer/panels/graph_picture.h>

#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/graph/graph_edges.h>
#include <tapedeck/viewer/panels/graph_routes.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

namespace {

constexpr float kLeastFrame = 30;  // units of the canvas: a lower frame is drawn as a closed module
constexpr float kTextHeight = 13;  // a lower box has no text
constexpr float kSign = 11;        // the square with + or -
constexpr std::size_t kMostEdges = 3000, kMostMarkedEdges = 200;
constexpr double kGroundShare = 0.13, kFrameShare = 0.2, kModuleShare = 0.62;  // of the colour of a phase

ImVec2 low(const CanvasBox& b) { return ImVec2(b.x0, b.y0); }
ImVec2 high(const CanvasBox& b) { return ImVec2(b.x1, b.y1); }

// The colours of phases are in the order forward, backward, update, clones.
Colour lane_colour(Lane lane) {
  constexpr int kPhases[kLaneCount] = {0, 3, 1, 2};
  return phase_colour(kPhases[static_cast<int>(lane)]);
}

std::string numbers_of(const GraphScene& scene, const LaneSums& sums) {
  const ModuleTree& tree = *scene.tree;
  std::string text = grouped(sums.nodes) + (sums.nodes == 1 ? " node" : " nodes"),
              bytes = unit_of(scene.step->plan()).readable_text(sums.bytes);
  if (const std::size_t zeros = bytes.find(".00 "); zeros != std::string::npos) bytes.erase(zeros, 3);
  if (sums.bytes > 0) text += " · " + bytes;
  if (tree.total_us() > 0 && sums.us > 0) text += " · " + percent(sums.us / tree.total_us());
  return text;
}

// As many of the parts of a text, "15 nodes · 192 MiB · 2 %", as the width has room for, from the first on.
std::string whole_parts(std::string text, float width) {
  while (text_width(TextSize::small, text) > width) {
    const std::size_t end = text.rfind(" · ");
    if (end == std::string::npos) break;
    text.resize(end);
  }
  return text;
}

void draw_sign(float x, float y, bool open, Colour colour) {
  const float middle_x = x + std::floor(kSign / 2), middle_y = y + std::floor(kSign / 2);
  shapes()->AddRect(ImVec2(x, y), ImVec2(x + kSign, y + kSign), to_imgui(colour));
  shapes()->AddRectFilled(ImVec2(x + 3, middle_y), ImVec2(x + kSign - 3, middle_y + 1), to_imgui(colour));
  if (!open) shapes()->AddRectFilled(ImVec2(middle_x, y + 3), ImVec2(middle_x + 1, y + kSign - 3), to_imgui(colour));
}

void draw_polyline(const ImVec2* points, std::size_t count, Colour colour, float thickness) {
  shapes()->AddPolyline(points, static_cast<int>(count), to_imgui(colour), 0, thickness);
}

void draw_arrow(const ImVec2& from, const ImVec2& to, Colour colour, float size) {
  const float dx = to.x - from.x, dy = to.y - from.y, length = std::sqrt(dx * dx + dy * dy);
  if (length < 0.1f) return;
  const float ux = dx / length * size, uy = dy / length * size;
  shapes()->AddTriangleFilled(to, ImVec2(to.x - ux - uy * 0.5f, to.y - uy + ux * 0.5f),
                              ImVec2(to.x - ux + uy * 0.5f, to.y - uy - ux * 0.5f), to_imgui(colour));
}

}  // namespace

CanvasBox GraphPicture::place(const GraphBox& box) const {
  const CanvasBox at{std::round(view_.x_of(box.x)), std::round(view_.y_of(box.y)), std::round(view_.x_of(box.right())),
                     std::round(view_.y_of(box.bottom()))};
  return {at.x0, at.y0, std::max(at.x1, at.x0 + 1), std::max(at.y1, at.y0 + 1)};
}

bool GraphPicture::in_view(const CanvasBox& box) const {
  const CanvasBox& plot = view_.plot();
  return box.x1 > plot.x0 && box.x0 < plot.x1 && box.y1 > plot.y0 && box.y0 < plot.y1;
}

void GraphPicture::walk(const GraphScene& scene) {
  shown_.clear();
  open_.assign(1, 0);
  const GraphLayout& layout = scene.layout;
  const double top = view_.y_at(view_.plot().y0), bottom = view_.y_at(view_.plot().y1);
  std::vector<BoxId> frames;
  for (BoxId lane = kLaneCount - 1; lane >= 0; --lane)
    if (layout.boxes[at(lane)].width > 0) frames.push_back(lane);
  while (!frames.empty()) {
    const GraphBox& frame = layout.boxes[at(frames.back())];
    frames.pop_back();
    const auto begin = layout.rows.begin() + frame.first_row, end = begin + frame.rows;
    auto row = std::partition_point(begin, end, [&](const BoxRow& r) { return r.bottom < top; });
    for (; row != end && row->top <= bottom; ++row)
      for (BoxId id = row->first; id < row->first + row->boxes; ++id) {
        const GraphBox& box = layout.boxes[at(id)];
        const CanvasBox place_of = place(box);
        if (!in_view(place_of)) continue;
        const bool is_frame = box.open && place_of.height() >= kLeastFrame;
        shown_.push_back({id, place_of, is_frame});
        if (!is_frame) continue;
        frames.push_back(id);
        if (open_.back() != box.module) open_.push_back(box.module);
      }
  }
  std::sort(open_.begin(), open_.end());
  open_.erase(std::unique(open_.begin(), open_.end()), open_.end());
}

void GraphPicture::draw(const GraphScene& scene, const GraphView& view, const std::vector<Colour>& colours,
                        const GraphMarks& marks) {
  view_ = view;
  walk(scene);
  shapes()->PushClipRect(low(view.plot()), high(view.plot()), true);
  draw_lanes(scene);
  for (const Shown& shown : shown_)
    if (shown.is_frame) draw_frame(scene, shown);
  draw_edges(scene);
  draw_repeats(scene);
  for (const Shown& shown : shown_) {
    if (shown.is_frame) continue;
    if (scene.layout.boxes[at(shown.box)].module != kNone)
      draw_module(scene, shown);
    else
      draw_leaf(scene, shown, colours);
  }
  for (const Shown& shown : shown_)
    if (shown.is_frame) draw_title(scene, shown);
  draw_marked_edges(scene, marks);
  draw_marks(scene, marks);
  shapes()->PopClipRect();
}

// The grounds of the lanes, over the whole height of the picture, with their names.
void GraphPicture::draw_lanes(const GraphScene& scene) const {
  const CanvasBox& plot = view_.plot();
  for (int l = 0; l < kLaneCount; ++l) {
    const GraphBox& lane = scene.layout.boxes[at(l)];
    if (lane.width == 0) continue;
    const CanvasBox box = place(lane);
    const Colour colour = lane_colour(static_cast<Lane>(l));
    shapes()->AddRectFilled(ImVec2(box.x0, plot.y0), ImVec2(box.x1, plot.y1),
                            to_imgui(mixed(colours::kPlot, colour, kGroundShare)));
  }
}

void GraphPicture::draw_frame(const GraphScene& scene, const Shown& shown) const {
  const GraphBox& box = scene.layout.boxes[at(shown.box)];
  const int depth = scene.tree->module(box.module).depth;
  const Colour colour = lane_colour(box.lane);
  shapes()->AddRectFilled(low(shown.at), high(shown.at),
                          to_imgui(mixed(colours::kPlot, colour, std::min(kGroundShare + depth * 0.07, 0.4))), 4);
  shapes()->AddRect(low(shown.at), high(shown.at), to_imgui(mixed(colours::kPlot, colour, 0.9)), 4);
}

// In the strip above the content, or over the content where the strip is too low and no frame inside has a title.
void GraphPicture::draw_title(const GraphScene& scene, const Shown& shown) const {
  const GraphBox& box = scene.layout.boxes[at(shown.box)];
  const Module& module = scene.tree->module(box.module);
  const float strip = static_cast<float>(BoxSizes::kTitle * view_.scale());
  // The title stays in view while its frame is.
  const float y = std::min(std::max(shown.at.y0, view_.plot().y0), shown.at.y1 - std::max(strip, 16.0f));
  const float x = std::max(shown.at.x0, view_.plot().x0), width = std::min(shown.at.x1, view_.plot().x1) - x;
  if (width < 40) return;
  if (strip < kTextHeight) {
    if (shown.at.height() > 160) return;  // its inner frames are large enough for titles of their own
    const float wide = std::min(text_width(TextSize::small, module.label) + 8, width - 4);
    shapes()->AddRectFilled(ImVec2(x + 2, y + 2), ImVec2(x + 2 + wide, y + 17), to_imgui(colours::kPlot, 200));
    draw_text_cut(TextSize::small, x + 6, y + 3, wide - 6, colours::kText, module.label);
    return;
  }
  if (y > shown.at.y0)
    shapes()->AddRectFilled(ImVec2(x + 1, y), ImVec2(x + width - 1, y + strip),
                            to_imgui(mixed(colours::kPlot, lane_colour(box.lane), kFrameShare + 0.1)));
  const float middle = y + std::floor(strip / 2);
  draw_sign(x + 6, middle - 5, true, colours::kFaint);
  const float name = text_width(TextSize::body, module.label);
  draw_text_cut(TextSize::body, x + 23, middle - 8, width - 28, colours::kText, module.label);
  if (name + 40 < width)
    draw_text_cut(TextSize::small, x + 33 + name, middle - 6, width - name - 38, colours::kFaint,
                  whole_parts(numbers_of(scene, module.sums[static_cast<std::size_t>(box.lane)]), width - name - 38));
}

void GraphPicture::draw_module(const GraphScene& scene, const Shown& shown) const {
  const GraphBox& box = scene.layout.boxes[at(shown.box)];
  const Module& module = scene.tree->module(box.module);
  const LaneSums& sums = module.sums[static_cast<std::size_t>(box.lane)];
  const Colour colour = lane_colour(box.lane), ground = mixed(colours::kPlot, colour, kModuleShare);
  const CanvasBox& r = shown.at;
  const float rounding = r.height() > 20 ? 4 : 0;
  shapes()->AddRectFilled(low(r), high(r), to_imgui(ground), rounding);
  if (box.lane == Lane::recomputed) draw_hatch(low(r), high(r), colour);
  if (r.height() < 6) return;
  shapes()->AddRect(low(r), high(r), to_imgui(mixed(colour, colours::kText, 0.25)), rounding);
  if (r.height() < kTextHeight || r.width() < 24) return;
  const Colour text = text_on(ground);
  // The height before it is rounded to pixels: boxes of one size have the same lines.
  const bool two_lines = BoxSizes::kModuleHeight * view_.scale() >= 29.5, has_sign = r.width() >= 70;
  const float left = r.x0 + (has_sign ? 24 : 5), width = r.x1 - left - 5;
  const float y = std::round(two_lines ? r.y0 + (r.height() - 32) * 0.4f : r.y0 + (r.height() - 13) / 2 - 1);
  if (has_sign) draw_sign(r.x0 + 7, std::round(y + 3), false, mixed(ground, text, 0.8));
  if (box.lane == Lane::recomputed) {
    const float wide = std::min(text_width(two_lines ? TextSize::body : TextSize::small, module.label), width);
    shapes()->AddRectFilled(ImVec2(left - 2, y + 1), ImVec2(left + wide + 2, y + 15), to_imgui(ground));
  }
  draw_text_cut(two_lines ? TextSize::body : TextSize::small, left, y, width, text, module.label);
  if (!two_lines) return;
  const std::string numbers = whole_parts(numbers_of(scene, sums), r.width() - 12);
  const float under = std::min(text_width(TextSize::small, numbers), r.width() - 12);
  if (box.lane == Lane::recomputed)
    shapes()->AddRectFilled(ImVec2(r.x0 + 5, y + 17), ImVec2(r.x0 + 9 + under, y + 30), to_imgui(ground));
  draw_text_cut(TextSize::small, r.x0 + 7, y + 17, r.width() - 12, mixed(ground, text, 0.85), numbers);
  // The bar of time.
  if (scene.longest_us <= 0 || r.height() < 37) return;
  const float full = r.width() - 14, share = static_cast<float>(sums.us / scene.longest_us);
  const ImVec2 bar(r.x0 + 7, r.y1 - 5);
  shapes()->AddRectFilled(bar, ImVec2(bar.x + full, bar.y + 3), to_imgui(mixed(ground, colours::kPlot, 0.45)));
  shapes()->AddRectFilled(bar, ImVec2(bar.x + std::round(full * std::clamp(share, 0.0f, 1.0f)), bar.y + 3),
                          to_imgui(mixed(ground, text, 0.75)));
}

void GraphPicture::draw_leaf(const GraphScene& scene, const Shown& shown, const std::vector<Colour>& colours) const {
  const GraphBox& box = scene.layout.boxes[at(shown.box)];
  const CanvasBox& r = shown.at;
  const Colour colour = box.input != kNone              ? role_class_colour(RoleClass::input)
                        : at(box.node) < colours.size() ? colours[at(box.node)]
                                                        : colours::kButton;
  const float rounding = box.input != kNone && r.height() > 12 ? r.height() / 2 : r.height() > 16 ? 3.0f : 0.0f;
  shapes()->AddRectFilled(low(r), high(r), to_imgui(colour), rounding);
  if (box.lane == Lane::recomputed && r.height() >= 5) draw_hatch(low(r), high(r), colour);
  if (r.height() < 8) return;
  shapes()->AddRect(low(r), high(r), to_imgui(shaded(colour, 0.6)), rounding);
  if (r.height() < kTextHeight || r.width() < 30) return;
  const Graph& graph = scene.model->graph();
  const std::string op = box.input != kNone ? "input" : graph.nodes[at(box.node)].op->name;
  const std::string name = scene.name_of(shown.box);
  const Colour text = text_on(colour);
  const bool opens = box.input == kNone && graph.nodes[at(box.node)].n_regions > 0 && r.width() >= 70;
  const float left = r.x0 + (box.input != kNone ? 10 : opens ? 24 : 6), y = r.y0 + std::round((r.height() - 13) / 2);
  if (opens) draw_sign(r.x0 + 7, std::round((r.y0 + r.y1 - kSign) / 2), false, mixed(colour, text, 0.8));
  const float width = r.x1 - left - 5, wide = text_width(TextSize::small, op);
  if (box.lane == Lane::recomputed)
    shapes()->AddRectFilled(ImVec2(left - 2, y), ImVec2(std::min(left + width, r.x1 - 3), y + 13), to_imgui(colour));
  draw_text_cut(TextSize::small, left, y, width, text, op);
  if (wide + 44 < width && name != op)
    draw_text_cut(TextSize::small, left + wide + 8, y, width - wide - 8, mixed(colour, text, 0.68), name);
}

void GraphPicture::draw_edge(const GraphScene& scene, const GraphEdge& edge, Colour colour, float thickness) {
  const std::size_t first = points_.size();
  route_edge(scene.layout, edge, view_, &points_);
  const std::size_t count = points_.size() - first;
  draw_polyline(points_.data() + first, count, colour, thickness);
  if (view_.scale() > 0.3) draw_arrow(points_[points_.size() - 2], points_.back(), colour, std::min(5 + thickness, 9.0f));
}

// The edges of the modules that were walked through, as far as they are in view.
void GraphPicture::draw_edges(const GraphScene& scene) {
  wires_.clear();
  points_.clear();
  const GraphLayout& layout = scene.layout;
  const double top = view_.y_at(view_.plot().y0), bottom = view_.y_at(view_.plot().y1);
  const double unit = 1 / view_.scale();
  std::int64_t most = 1;
  std::vector<std::int32_t> found;
  for (const ModuleId m : open_) {
    const std::int32_t begin = layout.first_edge[at(m)], end = layout.first_edge[at(m) + 1];
    const auto past = std::partition_point(layout.edges.begin() + begin, layout.edges.begin() + end,
                                           [&](const GraphEdge& e) { return e.top <= bottom; });
    for (auto e = past; e != layout.edges.begin() + begin && found.size() < kMostEdges;) {
      --e;
      if (e->reach < top) break;
      if (e->bottom < top || e->bottom - e->top < 3 * unit) continue;
      found.push_back(static_cast<std::int32_t>(e - layout.edges.begin()));
      most = std::max(most, e->bytes);
    }
  }
  std::sort(found.begin(), found.end());
  const float thin = std::clamp(static_cast<float>(view_.scale()) * 1.6f, 0.45f, 1.0f);  // lines of a small picture are thin
  for (const std::int32_t i : found) {
    const GraphEdge& edge = layout.edges[at(i)];
    const float share = static_cast<float>(std::sqrt(static_cast<double>(edge.bytes) / static_cast<double>(most)));
    const Colour colour = role_class_colour(role_of(scene.model->plan(), edge.value));
    const std::size_t first = points_.size();
    draw_edge(scene, edge, mixed(colours::kPlot, colour, 0.8), (1.2f + 2.3f * share) * thin);
    wires_.push_back({i, first, points_.size() - first});
  }
}

// A dashed arrow from a box to the box that computes it again.
void GraphPicture::draw_repeats(const GraphScene& scene) const {
  const GraphLayout& layout = scene.layout;
  for (const Shown& shown : shown_) {
    const GraphBox& box = layout.boxes[at(shown.box)];
    if (box.lane != Lane::recomputed || shown.is_frame || view_.scale() < 0.25) continue;
    const NodeId original = box.node == kNone ? kNone : scene.tree->original_of(box.node);
    const BoxId from = box.module != kNone ? layout.boxes_of_module[at(box.module)][static_cast<std::size_t>(Lane::forward)]
                       : original != kNone ? layout.box_of_node[at(original)]
                                           : kNone;
    if (from == kNone || layout.boxes[at(from)].lane == Lane::recomputed) continue;
    const CanvasBox a = place(layout.boxes[at(from)]);
    const float up = std::min(a.height(), shown.at.height()) * 0.2f;  // edges meet the middle
    const float ya = (a.y0 + a.y1) / 2 - up, yb = (shown.at.y0 + shown.at.y1) / 2 - up;
    const Colour colour = role_class_colour(RoleClass::recomputed);
    const ImVec2 start(a.x1, ya), end(shown.at.x0, yb);
    const float length = std::max(end.x - start.x, 1.0f);
    for (float d = 0; d < length - 4; d += 8) {
      const float t = d / length, u = std::min(d + 4, length) / length;
      shapes()->AddLine(ImVec2(start.x + (end.x - start.x) * t, start.y + (end.y - start.y) * t),
                        ImVec2(start.x + (end.x - start.x) * u, start.y + (end.y - start.y) * u), to_imgui(colour), 1.5f);
    }
    draw_arrow(start, end, colour, 7);
  }
}

// The edges of the selected value, of those too that are not drawn else, and what its node reads.
void GraphPicture::draw_marked_edges(const GraphScene& scene, const GraphMarks& marks) {
  const GraphLayout& layout = scene.layout;
  const Graph& graph = scene.model->graph();
  std::size_t drawn = 0;
  const auto mark = [&](BoxId from, BoxId to, Colour colour) {
    if (from == kNone || to == kNone || from == to || ++drawn > kMostMarkedEdges) return;
    const GraphEdge edge = edge_between(*scene.tree, layout, from, to);
    const std::size_t first = points_.size();
    draw_edge(scene, edge, colours::kOutline, 4.5f);
    points_.resize(first);
    draw_edge(scene, edge, colour, 2.2f);
    points_.resize(first);
  };
  if (marks.selection.node != kNone)
    for (const ValueId v : graph.inputs(graph.nodes[at(marks.selection.node)]))
      mark(layout.box_of(graph, v), layout.box_of_node[at(marks.selection.node)], colours::kLink);
  if (marks.selection.value == kNone) return;
  for (const BoxId to : layout.reader_boxes(*scene.tree, marks.selection.value))
    mark(layout.box_of(graph, marks.selection.value), to, colours::kSelect);
}

void GraphPicture::outline(const GraphScene& scene, BoxId id, Colour colour, float thickness) const {
  if (id == kNone) return;
  const CanvasBox r = place(scene.layout.boxes[at(id)]);
  if (!in_view(r)) return;
  shapes()->AddRect(ImVec2(r.x0 - 2, r.y0 - 2), ImVec2(r.x1 + 2, r.y1 + 2), to_imgui(colours::kOutline), 4, 0, thickness + 2);
  shapes()->AddRect(ImVec2(r.x0 - 2, r.y0 - 2), ImVec2(r.x1 + 2, r.y1 + 2), to_imgui(colour), 4, 0, thickness);
}

void GraphPicture::draw_marks(const GraphScene& scene, const GraphMarks& marks) const {
  const GraphLayout& layout = scene.layout;
  const Graph& graph = scene.model->graph();
  if (marks.module > 0)
    outline(scene, layout.boxes_of_module[at(marks.module)][static_cast<std::size_t>(marks.module_lane)], colours::kLink, 1.5f);
  for (const ValueId copy : marks.selection.copies)
    if (copy != marks.selection.value) outline(scene, layout.box_of(graph, copy), colours::kSelect, 1);
  const BoxId selected = marks.selection.node != kNone ? layout.box_of_node[at(marks.selection.node)]
                                                       : layout.box_of(graph, marks.selection.value);
  outline(scene, selected, colours::kSelect, 2);
  outline(scene, layout.box_of(graph, marks.selection.hovered), colours::kHover, 1);
}

GraphPicture::Hit GraphPicture::hit(const ImVec2& at_point) const {
  Hit hit;
  if (!view_.plot().contains(at_point)) return hit;
  const float strip = static_cast<float>(BoxSizes::kTitle * view_.scale());
  for (auto shown = shown_.rbegin(); shown != shown_.rend(); ++shown) {
    if (!shown->at.contains(at_point)) continue;
    hit.box = shown->box;
    const float x = std::max(shown->at.x0, view_.plot().x0), y = std::max(shown->at.y0, view_.plot().y0);
    hit.on_sign = at_point.x < x + 22 && at_point.y < y + (shown->is_frame ? std::max(strip, 16.0f) : 24.0f) &&
                  shown->at.width() >= 70 && shown->at.height() >= kTextHeight;
    if (!shown->is_frame) return hit;
    break;  // the innermost frame comes last; an edge may lie over it
  }
  float nearest = 5;
  for (const Wire& wire : wires_) {
    const float distance = distance_to(points_.data() + wire.first, wire.points, at_point);
    if (distance >= nearest) continue;
    nearest = distance;
    hit.edge = wire.edge;
  }
  return hit;
}

ImVec2 GraphPicture::place_of_sign(const GraphScene& scene, BoxId id) const {
  const CanvasBox r = place(scene.layout.boxes[at(id)]);
  return ImVec2(r.x0 + 11, r.y0 + 13);
}

}  // namespace tapedeck::viewer
