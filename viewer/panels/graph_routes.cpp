#include <tapedeck/viewer/panels/graph_routes.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

namespace {

constexpr double kStep = 9;          // from a box to the first turn; less than the gap between rows
constexpr double kMarginSlot = 4.5;  // between edges in one margin
constexpr double kCurvePiece = 12;   // units of the canvas
constexpr int kSlots = 3, kMostPieces = 24;
constexpr float kCorner = 6;

struct Point {
  double x, y;
};

ImVec2 on_canvas(const GraphView& view, Point p) { return ImVec2(view.x_of(p.x), view.y_of(p.y)); }

void add_curve(const GraphView& view, Point a, Point b, Point c, Point d, std::vector<ImVec2>* points) {
  const double length = (std::abs(d.x - a.x) + std::abs(d.y - a.y)) * view.scale();
  const int pieces = std::clamp(static_cast<int>(length / kCurvePiece), 3, kMostPieces);
  for (int i = 0; i <= pieces; ++i) {
    const double t = static_cast<double>(i) / pieces, u = 1 - t;
    const double wa = u * u * u, wb = 3 * u * u * t, wc = 3 * u * t * t, wd = t * t * t;
    points->push_back(on_canvas(view, {wa * a.x + wb * b.x + wc * c.x + wd * d.x, wa * a.y + wb * b.y + wc * c.y + wd * d.y}));
  }
}

// Straight pieces with round corners.
void add_corners(const std::vector<ImVec2>& corners, std::vector<ImVec2>* points) {
  points->push_back(corners.front());
  for (std::size_t i = 1; i + 1 < corners.size(); ++i) {
    const ImVec2 at = corners[i];
    const auto towards = [&](const ImVec2& other) {
      const float dx = other.x - at.x, dy = other.y - at.y, length = std::sqrt(dx * dx + dy * dy);
      const float by = length > 0 ? std::min(kCorner, length / 2) / length : 0;
      return ImVec2(at.x + dx * by, at.y + dy * by);
    };
    const ImVec2 before = towards(corners[i - 1]), after = towards(corners[i + 1]);
    points->push_back(before);
    points->push_back(ImVec2((before.x + 2 * at.x + after.x) / 4, (before.y + 2 * at.y + after.y) / 4));
    points->push_back(after);
  }
  points->push_back(corners.back());
}

// The frame below `outer` that a box lies in, or the box itself.
const GraphBox& inside(const GraphLayout& layout, BoxId id, BoxId outer) {
  const GraphBox* box = &layout.boxes[static_cast<std::size_t>(id)];
  while (box->frame != outer && box->frame != kNone) box = &layout.boxes[static_cast<std::size_t>(box->frame)];
  return *box;
}

// The margin that an edge in a lane goes through: that of the common frame if it passes rows, else of the frames that it leaves
// and enters.
double margin_of(const GraphLayout& layout, const GraphEdge& edge, bool left) {
  const Lane lane = layout.boxes[static_cast<std::size_t>(edge.from)].lane;
  const BoxId common = layout.boxes_of_module[static_cast<std::size_t>(edge.meet)][static_cast<std::size_t>(lane)];
  const double slot = 6 + kMarginSlot * ((edge.from + edge.to) % kSlots);
  const auto side = [&](const GraphBox& box) { return left ? box.x + slot : box.right() - slot; };
  if (std::abs(edge.rows) > 1 && common != kNone) return side(layout.boxes[static_cast<std::size_t>(common)]);
  const GraphBox &a = inside(layout, edge.from, common), &b = inside(layout, edge.to, common);
  if (!a.open && !b.open) return left ? std::min(a.x, b.x) - slot : std::max(a.right(), b.right()) + slot;
  if (!a.open || !b.open) return side(a.open ? a : b);
  return left ? std::min(side(a), side(b)) : std::max(side(a), side(b));
}

void route_in_lane(const GraphLayout& layout, const GraphEdge& edge, const GraphView& view, std::vector<ImVec2>* points) {
  const GraphBox &a = layout.boxes[static_cast<std::size_t>(edge.from)], &b = layout.boxes[static_cast<std::size_t>(edge.to)];
  const bool up = a.lane == Lane::backward;
  const double way = up ? -1 : 1;
  const Point from{a.x + a.width / 2, up ? a.y : a.bottom()}, to{b.x + b.width / 2, up ? b.bottom() : b.y};
  const bool beside = a.y < b.bottom() && b.y < a.bottom();
  if (beside) {
    const bool right = a.x < b.x;
    const Point start{right ? a.right() : a.x, a.y + a.height / 2}, end{right ? b.x : b.right(), b.y + b.height / 2};
    const double middle = (start.x + end.x) / 2;
    return add_curve(view, start, {middle, start.y}, {middle, end.y}, end, points);
  }
  const double ahead = (to.y - from.y) * way;
  if (ahead >= 0 && edge.is_clear) {
    const double bend = std::min(ahead / 2, 60.0) * way;
    return add_curve(view, from, {from.x, from.y + bend}, {to.x, to.y - bend}, to, points);
  }
  const double margin = margin_of(layout, edge, a.lane == Lane::forward || a.lane == Lane::recomputed);
  const double turn = from.y + kStep * way, last = to.y - kStep * way;
  add_corners({on_canvas(view, from), on_canvas(view, {from.x, turn}), on_canvas(view, {margin, turn}),
               on_canvas(view, {margin, last}), on_canvas(view, {to.x, last}), on_canvas(view, to)},
              points);
}

}  // namespace

void route_edge(const GraphLayout& layout, const GraphEdge& edge, const GraphView& view, std::vector<ImVec2>* points) {
  const GraphBox &a = layout.boxes[static_cast<std::size_t>(edge.from)], &b = layout.boxes[static_cast<std::size_t>(edge.to)];
  if (a.lane == b.lane) return route_in_lane(layout, edge, view, points);
  const bool right = a.x < b.x;
  const Point to{right ? b.x : b.right(), b.y + b.height / 2};
  if (a.input != kNone) {  // inputs stand side by side: an edge from the side of one would seem to join it with the next
    const Point below{a.x + a.width / 2, a.bottom()};
    return add_curve(view, below, {below.x, below.y + kStep}, {to.x - (right ? 90 : -90), to.y}, to, points);
  }
  const Point from{right ? a.right() : a.x, a.y + a.height / 2};
  const double bend = std::max(std::min(std::abs(to.x - from.x) / 2, 90.0), 20.0) * (right ? 1 : -1);
  add_curve(view, from, {from.x + bend, from.y}, {to.x - bend, to.y}, to, points);
}

float distance_to(const ImVec2* points, std::size_t count, const ImVec2& from) {
  float nearest = 1e9f;
  for (std::size_t i = 0; i + 1 < count; ++i) {
    const ImVec2 a = points[i], b = points[i + 1];
    const float dx = b.x - a.x, dy = b.y - a.y, squared = dx * dx + dy * dy;
    const float t = squared > 0 ? std::clamp(((from.x - a.x) * dx + (from.y - a.y) * dy) / squared, 0.0f, 1.0f) : 0.0f;
    const float x = a.x + dx * t - from.x, y = a.y + dy * t - from.y;
    nearest = std::min(nearest, std::sqrt(x * x + y * y));
  }
  return nearest;
}

}  // namespace tapedeck::viewer
