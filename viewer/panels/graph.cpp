// The panel of the graph: asks for layouts, moves the view, and answers the mouse and the keys.
#include <tapedeck/viewer/panels/graph.h>

#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/plan/plan_unit.h>
#include <tapedeck/viewer/plan/release_later.h>
#include <tapedeck/viewer/saved/saved_place.h>
#include <tapedeck/viewer/words/format.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr double kKeyZoom = 1.25, kKeyPan = 0.1, kRevealScale = 0.9;

std::string count_of(std::int64_t n, const char* one) { return grouped(n) + " " + one + (n == 1 ? "" : "s"); }

}  // namespace

GraphPanel::GraphPanel(Session& session)
    : PicturePanel(session), task_([this] {
        if (wake_function()) wake_function()();
      }) {}

// ---- layouts ----

GraphPanel::Wanted GraphPanel::wanted() const {
  return {session_.model() != nullptr ? session_.model()->serial() : 0, session_.measured_serial(), inside_, open_now()};
}

bool GraphPanel::is_fresh() const { return scene_ && scene_->step == session_.shared_model() && scene_->place.path == inside_; }

bool GraphPanel::is_laid_out() const { return scene_ && shown_ == wanted(); }

bool GraphPanel::settled() const { return is_laid_out() && waiting_.empty(); }

void GraphPanel::when_settled(std::function<void()> action) {
  if (settled() && is_fresh()) return action();
  waiting_.push_back(std::move(action));
  repaint();
}

// One action for each layout: it may ask for another one.
void GraphPanel::run_waiting() {
  while (!waiting_.empty() && is_laid_out() && is_fresh()) {
    const std::function<void()> action = std::move(waiting_.front());
    waiting_.pop_front();
    action();
  }
}

void GraphPanel::start() {
  const Wanted now = wanted();
  // A layout under way is waited for: while plans come faster than layouts, the newest plan is taken up next.
  if (session_.model() == nullptr || now == shown_ || task_.busy()) return;
  asked_ = now;
  // The tree knows the times of nodes, so it is made anew when these are measured.
  std::shared_ptr<const GraphScene> before = now.measured == shown_.measured ? scene_ : nullptr;
  task_.start([step = session_.shared_model(), before, us = session_.measured_us(), inside = inside_,
               open = open_now()](const std::atomic<bool>&) {
    return Result{make_graph_scene(step, inside, before.get(), us, open), ""};
  });
}

void GraphPanel::arrive() {
  std::optional<Result> result = task_.take();
  if (!result) return;
  shown_ = asked_;
  error_ = std::move(result->error);
  if (result->scene) take(std::move(result->scene));
}

void GraphPanel::take(std::shared_ptr<const GraphScene> scene) {
  const bool is_same_place = scene_ && scene_->place.path == scene->place.path;
  if (!anchor_ && is_same_place && view_.is_moved() && reveal_node_ == kNone && reveal_module_.empty()) {
    // Another plan: the module in the middle stays there.
    const ImVec2 middle((view_.plot().x0 + view_.plot().x1) / 2, (view_.plot().y0 + view_.plot().y1) / 2);
    anchor_at(picture_.hit(middle).box, false);
  }
  release_later(std::exchange(scene_, std::move(scene)));
  picture_.forget();
  if (asked_.inside == inside_ && scene_->place.path != inside_) {
    // Another plan, which does not have the region any more.
    go_inside(scene_->place.path);
    shown_.inside = inside_;
  }
  marks_.module = chosen_.empty() ? kNone : scene_->find_module(chosen_);
  view_.set(view_.plot(), scene_->layout.width, scene_->layout.height);
  hold_anchor();
  show_revealed();
  show_restored();
}

void GraphPanel::finish() {
  while (session_.model() != nullptr && error_.empty() && !settled()) {
    start();
    if (std::optional<Result> result = task_.wait()) {
      shown_ = asked_;
      error_ = std::move(result->error);
      if (result->scene) take(std::move(result->scene));
    }
    run_waiting();
  }
}

void GraphPanel::stop() { task_.cancel(); }

void GraphPanel::closed() {
  task_.cancel();
  release_later(std::exchange(scene_, nullptr));
  picture_.forget();
  shown_ = asked_ = Wanted();
  open_.reset();
  inside_.clear();
  open_inside_.reset();
  selected_inside_.clear();
  restored_.reset();
  outside_.clear();
  chosen_.clear();
  anchor_.reset();
  waiting_.clear();
  reveal_node_ = kNone;
  reveal_module_.clear();
  coloured_ = nullptr;
  marks_ = GraphMarks();
  view_.reset();
  PicturePanel::closed();
}

// ---- what stays in its place ----

void GraphPanel::anchor_at(BoxId id, bool with_mouse) {
  anchor_.reset();
  if (!scene_ || id == kNone) return;
  const GraphBox* box = &scene_->layout.boxes[at(id)];
  while (box->module == kNone && box->frame != kNone) box = &scene_->layout.boxes[at(box->frame)];
  anchor_ = Anchor{scene_->tree->path(box->module), box->lane, ImVec2(view_.x_of(box->x), view_.y_of(box->y)),
                   ImGui::GetCurrentContext() != nullptr ? ImGui::GetIO().MousePos : ImVec2(), with_mouse};
}

// The corner of the box stays where it was. A box that became smaller comes to the mouse.
void GraphPanel::hold_anchor() {
  const std::optional<Anchor> anchor = std::exchange(anchor_, std::nullopt);
  if (!anchor) return;
  const ModuleId m = scene_->find_module(anchor->module);
  const BoxId id = m == kNone ? kNone : scene_->layout.boxes_of_module[at(m)][static_cast<std::size_t>(anchor->lane)];
  if (id == kNone) return;
  const GraphBox& box = scene_->layout.boxes[at(id)];
  ImVec2 place = anchor->place;
  if (anchor->has_mouse) {
    const float width = static_cast<float>(box.width * view_.scale()), height = static_cast<float>(box.height * view_.scale());
    if (anchor->mouse.x >= place.x + width || anchor->mouse.x < place.x) place.x = anchor->mouse.x - width / 2;
    if (anchor->mouse.y >= place.y + height || anchor->mouse.y < place.y) place.y = anchor->mouse.y - height / 2;
  }
  view_.put(box.x, box.y, place);
}

void GraphPanel::show_revealed() {
  if (!scene_ || shown_.open != open_now() || !is_fresh()) return;
  const NodeId n = std::exchange(reveal_node_, kNone);
  const std::string path = std::exchange(reveal_module_, {});
  BoxId id = kNone;
  if (n != kNone && n < scene_->tree->nodes()) id = scene_->layout.box_of_node[at(n)];
  if (!path.empty()) {
    const ModuleId m = scene_->find_module(path);
    for (std::size_t l = kLaneCount; m != kNone && l-- > 0;)
      if (const BoxId box = scene_->layout.boxes_of_module[at(m)][l]; box != kNone) id = box;
  }
  if (id == kNone) return;
  const GraphBox& box = scene_->layout.boxes[at(id)];
  const double fits = std::min(static_cast<double>(view_.plot().width()) / (box.width + 40),
                               static_cast<double>(view_.plot().height()) / (box.height + 40));
  view_.centre(box.x + box.width / 2, box.y + box.height / 2, std::min(kRevealScale, fits));
}

// ---- opening and closing ----

void GraphPanel::set_open_modules(OpenModules open) {
  leave(0);
  open_ = std::move(open);
  repaint();
}

void GraphPanel::change_open(std::set<std::string> open) {
  open_now() = std::move(open);
  repaint();
}

void GraphPanel::toggle_module(ModuleId module, Lane lane, bool with_mouse) {
  if (!scene_ || module <= 0) return;
  const std::string path = scene_->tree->path(module);
  anchor_at(scene_->layout.boxes_of_module[at(module)][static_cast<std::size_t>(lane)], with_mouse);
  std::set<std::string> open = open_now() ? *open_now() : scene_->open_paths();
  if (open.erase(path) == 0) open.insert(path);
  chosen_ = path;
  marks_.module = module;
  marks_.module_lane = lane;
  change_open(std::move(open));
}

void GraphPanel::toggle() {
  when_settled([this] { toggle_now(); });
}

void GraphPanel::step_level(int by) {
  when_settled([this, by] { step_level_now(by); });
}

void GraphPanel::reveal_selection() {
  leave(0);
  when_settled([this] { reveal_selection_now(); });
}

void GraphPanel::reveal_module(const std::string& path) {
  leave(0);
  when_settled([this, path] { reveal_module_now(path); });
}

void GraphPanel::toggle_now() {
  if (marks_.module > 0) return toggle_module(marks_.module, marks_.module_lane, false);
  const NodeId n = selection().node;
  if (n == kNone) return;
  if (scene_->model->graph().nodes[at(n)].n_regions > 0 && enter_selection()) return;
  // The outermost closed module around the node, or the open one that it lies in.
  const GraphBox& box = scene_->layout.boxes[at(scene_->layout.box_of_node[at(n)])];
  toggle_module(box.module != kNone ? box.module : scene_->layout.boxes[at(box.frame)].module, box.lane, false);
}

void GraphPanel::step_level_now(int by) {
  std::set<std::string> open = open_now() ? *open_now() : scene_->open_paths();
  const ModuleTree& tree = *scene_->tree;
  std::vector<char> has_open(tree.modules().size(), 0);
  for (std::size_t m = tree.modules().size() - 1; m > 0; --m) {
    const ModuleId parent = tree.modules()[m].parent;
    if (scene_->open[m] != 0 || has_open[m] != 0) has_open[at(parent)] = 1;
  }
  for (ModuleId m = 1; m < static_cast<ModuleId>(tree.modules().size()); ++m) {
    const auto& boxes = scene_->layout.boxes_of_module[at(m)];
    const bool is_shown = std::any_of(boxes.begin(), boxes.end(), [](BoxId box) { return box != kNone; });
    if (by > 0 && is_shown) open.insert(tree.path(m));
    if (by < 0 && scene_->open[at(m)] != 0 && has_open[at(m)] == 0) open.erase(tree.path(m));
  }
  const ImVec2 middle((view_.plot().x0 + view_.plot().x1) / 2, (view_.plot().y0 + view_.plot().y1) / 2);
  if (view_.is_moved()) anchor_at(picture_.hit(middle).box, false);
  change_open(std::move(open));
}

void GraphPanel::open_as_at_first() {
  open_now().reset();
  view_.show_home();
  repaint();
}

void GraphPanel::reveal_selection_now() {
  if (session_.selection().node == kNone) return;
  reveal_node_ = session_.selection().node;
  std::set<std::string> open = open_now() ? *open_now() : scene_->open_paths();
  for (ModuleId m = scene_->tree->module_of(reveal_node_); m > 0; m = scene_->tree->module(m).parent)
    open.insert(scene_->tree->path(m));
  if (open == (open_now() ? *open_now() : scene_->open_paths())) return show_revealed(), repaint();
  change_open(std::move(open));
}

void GraphPanel::reveal_module_now(const std::string& path) {
  const ModuleId module = scene_->find_module(path);
  if (module <= 0) return;
  reveal_module_ = chosen_ = path;
  marks_.module = module;
  marks_.module_lane = Lane::forward;
  for (std::size_t l = kLaneCount; l-- > 0;)
    if (scene_->tree->module(module).sums[l].nodes > 0) marks_.module_lane = static_cast<Lane>(l);
  std::set<std::string> open = open_now() ? *open_now() : scene_->open_paths();
  for (ModuleId m = scene_->tree->module(module).parent; m > 0; m = scene_->tree->module(m).parent)
    open.insert(scene_->tree->path(m));
  if (open == (open_now() ? *open_now() : scene_->open_paths())) return show_revealed(), repaint();
  change_open(std::move(open));
}

// ---- the regions of nodes ----

// The views of the step and of the regions on the way are kept for the way back.
void GraphPanel::go_inside(RegionPath path) {
  const std::size_t most = std::min(path.size(), inside_.size());
  const auto first_other = std::mismatch(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(most), inside_.begin()).first;
  const auto common = static_cast<std::size_t>(first_other - path.begin());
  if (common == path.size() && common == inside_.size()) return;
  if (common < inside_.size()) {
    view_ = outside_[common];
    outside_.resize(common);
  }
  if (common < path.size()) {
    outside_.resize(path.size());
    outside_[common] = view_;
    view_.reset();
  }
  inside_ = std::move(path);
  open_inside_.reset();
  selected_inside_.clear();
  restored_.reset();
  chosen_.clear();
  anchor_.reset();
  marks_ = GraphMarks();
  picture_.forget();
  session_.hover(kNone);
  repaint();
}

void GraphPanel::enter(NodeId n, int region) {
  const PlanModel* model = session_.model();
  if (model == nullptr || n < 0 || n >= model->nodes() || region < 0 || region >= model->graph().nodes[at(n)].n_regions) return;
  go_inside({step_into(*model, n, region)});
}

void GraphPanel::enter_box(NodeId n) {
  RegionPath path = inside_;
  path.push_back(step_into(*scene_->model, n, first_shown_region(scene_->model->graph().nodes[at(n)])));
  go_inside(std::move(path));
}

bool GraphPanel::enter_selection() {
  const PlanModel* model = is_inside() ? (is_fresh() ? scene_->model.get() : nullptr) : session_.model();
  const NodeId n = selection().node;
  if (model == nullptr) return false;
  if (n != kNone && model->graph().nodes[at(n)].n_regions > 0) {
    RegionPath path = inside_;
    path.push_back(step_into(*model, n, first_shown_region(model->graph().nodes[at(n)])));
    go_inside(std::move(path));
    return true;
  }
  return is_inside() &&
         show_region((inside_.back().region + 1) % scene_->place.around->graph().nodes[at(scene_->place.node)].n_regions);
}

// Another region of the same node.
bool GraphPanel::show_region(int region) {
  if (region == inside_.back().region) return false;
  RegionPath path = inside_;
  path.back().region = region;
  go_inside(std::move(path));
  return true;
}

bool GraphPanel::leave(std::size_t depth) {
  if (depth >= inside_.size()) return false;
  go_inside(RegionPath(inside_.begin(), inside_.begin() + static_cast<std::ptrdiff_t>(depth)));
  return true;
}

SavedRegion GraphPanel::saved_region() const {
  if (restored_) return *restored_;
  SavedRegion saved{inside_, {}};
  if (!scene_ || scene_->place.path != inside_) return saved;
  if (is_inside()) saved.place = viewer::place_of(*scene_->model, selected_inside_);
  if (view_.is_moved()) saved.place.view = view_.saved();
  return saved;
}

void GraphPanel::restore_region(const SavedRegion& region) {
  if (region.path.empty() && !region.place.view) return;
  go_inside(region.path);
  restored_ = region;
  repaint();
}

// The selection and the view of a session file, once the layout of the region with its open modules is there.
void GraphPanel::show_restored() {
  if (!restored_ || !is_laid_out() || scene_->place.path != restored_->path) return;
  const SavedPlace place = std::exchange(restored_, std::nullopt)->place;
  if (is_inside()) selected_inside_ = selection_at(place, *scene_->model);
  if (place.view) view_.show(*place.view);
}

void GraphPanel::select(ValueId v, NodeId n) {
  if (!is_inside())
    return v != kNone ? session_.select_value(v) : n != kNone ? session_.select_node(n) : session_.clear_selection();
  const Graph& graph = scene_->model->graph();
  selected_inside_.clear();
  if (v != kNone) selected_inside_.select_value(graph, v);
  if (n != kNone) selected_inside_.select_node(graph, n);
  if (selected_inside_.value != kNone) selected_inside_.copies = scene_->model->values().copies(selected_inside_.value);
  repaint();
}

void GraphPanel::hover(ValueId v) {
  session_.hover(is_inside() ? kNone : v);
  if (is_inside()) selected_inside_.hovered = v;
}

std::string GraphPanel::inside_text() const {
  return region_text(scene_->facts, inside_.back().region, unit_of(scene_->step->plan()));
}

float GraphPanel::draw_way(float y, float width) {
  if (!is_inside() || !is_fresh()) return 0;
  const RegionWay way = draw_region_way(scene_->place, y, width);
  if (way.leaves_to) leave(*way.leaves_to);
  if (way.region != kNone) show_region(way.region);
  return way.height;
}

void GraphPanel::tell_about_regions(NodeId n) const {
  const PlanModel& model = *scene_->model;
  const Node& node = model.graph().nodes[at(n)];
  const NodeRegions facts = regions_of(model, n);
  std::string sentence = std::string(node.op->name) + (facts.runs.empty() ? "" : ": " + facts.runs) + ". ";
  for (const RegionFacts& region : facts.regions)
    sentence += "The region \"" + region.title + "\" has " + count_of(region.nodes, "node") + ". ";
  if (facts.workspace > 0)
    sentence += "Its workspace takes " + unit_of(scene_->step->plan()).exact_text(facts.workspace) + ". ";
  const std::string name = node.n_outputs > 0 ? model.name_of(node.first_output) : node_title(model.graph(), n);
  explained_tooltip(name, sentence + facts.keeps, "Double click or + to open it");
}

// ---- the view ----

bool GraphPanel::move_view(ViewMove move) {
  if (!scene_) return true;
  const CanvasBox& plot = view_.plot();
  const ImVec2 middle((plot.x0 + plot.x1) / 2, (plot.y0 + plot.y1) / 2);
  const float dx = plot.width() * static_cast<float>(kKeyPan), dy = plot.height() * static_cast<float>(kKeyPan);
  switch (move) {
    case ViewMove::back:
      if (!view_.back() && is_inside()) leave(depth() - 1);
      break;
    case ViewMove::forward:
      view_.forward();
      break;
    case ViewMove::fit_all:
      view_.show_all();
      break;
    case ViewMove::fit_selection:
      if (selection().node == kNone) {
        view_.show_all();
      } else {
        reveal_node_ = selection().node;
        show_revealed();
      }
      break;
    case ViewMove::zoom_in:
      view_.zoom(kKeyZoom, middle, Gesture::key);
      break;
    case ViewMove::zoom_out:
      view_.zoom(1 / kKeyZoom, middle, Gesture::key);
      break;
    case ViewMove::left:
      view_.pan(dx, 0, Gesture::key);
      break;
    case ViewMove::right:
      view_.pan(-dx, 0, Gesture::key);
      break;
    case ViewMove::up:
      view_.pan(0, dy, Gesture::key);
      break;
    case ViewMove::down:
      view_.pan(0, -dy, Gesture::key);
      break;
  }
  repaint();
  return true;
}

void GraphPanel::wheel() {
  const ImGuiIO& io = ImGui::GetIO();
  if (!scene_ || !view_.plot().contains(io.MousePos)) return;
  const float steps = io.MouseWheel != 0 ? io.MouseWheel : io.KeyAlt ? io.MouseWheelH : 0;
  if (io.MouseWheelH != 0 && !io.KeyAlt)
    view_.pan(0.1f * io.MouseWheelH * view_.plot().width(), 0, Gesture::wheel);
  else if (steps != 0 && io.KeyShift)
    view_.pan(0, 0.1f * steps * view_.plot().height(), Gesture::wheel);
  else if (steps != 0 && io.KeyAlt)
    view_.pan(0.1f * steps * view_.plot().width(), 0, Gesture::wheel);
  else if (steps != 0)
    view_.zoom(std::pow(io.KeyCtrl ? 1.05 : 1.25, static_cast<double>(steps)), io.MousePos, Gesture::wheel);
}

// A drag with any button moves the picture; a press without a drag is a click.
void GraphPanel::follow_mouse() {
  const ImGuiIO& io = ImGui::GetIO();
  for (int button = 0; button < 3; ++button) {
    if (!io.MouseClicked[button] || !view_.plot().contains(io.MousePos)) continue;
    pressed_ = true;
    dragging_ = false;
    double_clicked_ = button == 0 && io.MouseDoubleClicked[0];
    if (double_clicked_) react(picture_.hit(io.MousePos));
  }
  if (!pressed_) return;
  for (int button = 0; button < 3; ++button)
    if (io.MouseDown[button] && io.MouseDragMaxDistanceSqr[button] > 16) dragging_ = true;
  if (io.MouseDown[0] || io.MouseDown[1] || io.MouseDown[2]) {
    if (dragging_ && (io.MouseDelta.x != 0 || io.MouseDelta.y != 0)) view_.pan(io.MouseDelta.x, io.MouseDelta.y, Gesture::drag);
    return;
  }
  pressed_ = false;
  if (std::exchange(dragging_, false)) return view_.end_gesture();
  if (!std::exchange(double_clicked_, false) && io.MouseReleased[0]) click(picture_.hit(io.MousePos));
}

// ---- clicks and words ----

// A double click.
void GraphPanel::react(const GraphPicture::Hit& hit) {
  if (!is_fresh()) return;
  if (hit.box == kNone) return view_.show_all();
  const GraphBox& box = scene_->layout.boxes[at(hit.box)];
  if (hit.on_sign) return;  // the click before has opened or closed it
  if (box.module > 0) return toggle_module(box.module, box.lane, true);
  if (box.node != kNone && scene_->model->graph().nodes[at(box.node)].n_regions > 0) return enter_box(box.node);
  view_.centre(box.x + box.width / 2, box.y + box.height / 2, 1.5);
}

void GraphPanel::click(const GraphPicture::Hit& hit) {
  if (!is_fresh()) return;
  chosen_.clear();
  marks_.module = kNone;
  if (hit.edge != kNone) return select(scene_->layout.edges[at(hit.edge)].value, kNone);
  if (hit.box == kNone) return select(kNone, kNone);
  const GraphBox& box = scene_->layout.boxes[at(hit.box)];
  if (box.node != kNone && hit.on_sign && scene_->model->graph().nodes[at(box.node)].n_regions > 0) return enter_box(box.node);
  if (box.node != kNone) return select(kNone, box.node);
  if (box.input != kNone) return select(box.input, kNone);
  if (hit.on_sign) return toggle_module(box.module, box.lane, true);
  chosen_ = scene_->tree->path(box.module);
  marks_.module = box.module;
  marks_.module_lane = box.lane;
  // The nodes of the module are marked in the other pictures, if they follow each other.
  const LaneSums& sums = scene_->tree->module(box.module).sums[static_cast<std::size_t>(box.lane)];
  select(kNone, kNone);
  if (!is_inside() && sums.nodes > 0 && sums.last - sums.first + 1 == sums.nodes)
    session_.select_range({sums.first, sums.last});
}

void GraphPanel::tell_about(const GraphPicture::Hit& hit) const {
  const Graph& graph = scene_->model->graph();
  if (hit.edge != kNone) {
    const GraphEdge& edge = scene_->layout.edges[at(hit.edge)];
    const std::string name = scene_->model->name_of(edge.value);
    std::string sentence = "From " + scene_->name_of(edge.from) + " to " + scene_->name_of(edge.to) + ", ";
    sentence += edge.values == 1 ? name + ": " + to_string(graph.values[at(edge.value)].type) + "."
                                 : count_of(edge.values, "value") + "; the largest is " + name + ".";
    return explained_tooltip(unit_of(scene_->step->plan()).exact_text(edge.bytes), sentence, "Click to select " + name);
  }
  if (hit.box == kNone) return;
  const GraphBox& box = scene_->layout.boxes[at(hit.box)];
  if (box.input != kNone) return value_tooltip(*scene_->model, box.input, unit_of(scene_->step->plan()));
  if (box.node != kNone) {
    const Node& node = graph.nodes[at(box.node)];
    if (node.n_regions > 0) return tell_about_regions(box.node);
    if (node.n_outputs > 0) return value_tooltip(*scene_->model, node.first_output, unit_of(scene_->step->plan()));
    return explained_tooltip(node_title(graph, box.node), "This node makes no value.", "");
  }
  const Module& module = scene_->tree->module(box.module);
  const LaneSums& sums = module.sums[static_cast<std::size_t>(box.lane)];
  std::string sentence = std::string(lane_name(box.lane)) + ": " + count_of(sums.nodes, "node");
  if (sums.nodes > 0 && sums.last - sums.first + 1 == sums.nodes && sums.nodes > 1)
    sentence += ", " + grouped(sums.first) + " to " + grouped(sums.last);
  sentence += ". Their results take " + unit_of(scene_->step->plan()).exact_text(sums.bytes) + ", not all of them at once.";
  if (scene_->tree->total_us() > 0)
    sentence += " They run for " + human_us(sums.us) + ", " + percent(sums.us / scene_->tree->total_us()) + " of the step.";
  if (module.is_group && box.input == kNone) sentence += " The group joins neighbours of a large module.";
  explained_tooltip(scene_->name_of(hit.box), sentence, box.open ? "Double click or - to close" : "Double click or + to open");
}

// ---- drawing ----

void GraphPanel::colour_nodes() {
  if (coloured_ == scene_.get() && coloured_by_ == session_.colour_by() && coloured_theme_ == theme_in_use()) return;
  coloured_ = scene_.get();
  coloured_by_ = session_.colour_by();
  coloured_theme_ = theme_in_use();
  const PlanColours roles(scene_->model);
  const PlanColours& of = is_inside() ? roles : session_.colours();
  node_colours_.clear();
  for (const std::int32_t rect : scene_->rect_of_node)
    node_colours_.push_back(rect == kNone ? colours::kButton : of.colour_of(at(rect)));
}

std::string GraphPanel::legend_text() const {
  if (is_inside()) return is_fresh() ? inside_text() : "";
  const bool has_clones = scene_ && scene_->layout.boxes[static_cast<std::size_t>(Lane::recomputed)].width > 0;
  std::string text = "forward goes down, backward goes up beside it";
  if (has_clones) text += ", hatched is computed again";
  return text + " · + opens a module, a drag moves, the wheel zooms";
}

void GraphPanel::draw(float width, float height) {
  if (draw_nothing(width, height)) return;
  // The mouse points at what the last frame showed.
  if (!dragging_) wheel();
  follow_mouse();
  arrive();
  run_waiting();
  start();
  const std::string title = "Graph" + (session_.document() != nullptr ? " · " + session_.document()->title() : std::string());
  draw_text_cut(TextSize::title, 12, 8, width - 24, colours::kText, title);
  float y = 30;
  const float after = 12 + text_width(TextSize::title, title) + 18;
  const std::string legend = legend_text();
  if (after + text_width(TextSize::small, legend) + 12 <= width) {
    draw_text(TextSize::small, after, 11, colours::kFaint, legend);
  } else {
    draw_text_cut(TextSize::small, 12, y, width - 24, colours::kFaint, legend);
    y += 17;
  }
  y += draw_way(y, width);
  y += is_inside() && scene_ ? draw_legend(12, y + 2, width - 24, PlanColours(scene_->model))
                             : draw_legend(12, y + 2, width - 24, session_.colours());
  const Plot plot = make_plot(8, y + 24, width - 8, height - 8, {0, 1}, {0, 1});
  draw_plot_ground(plot);
  if (!scene_ || scene_->place.path != inside_) {
    const std::string text = error_.empty() ? "laying out…" : error_;
    draw_text(TextSize::body, (width - text_width(TextSize::body, text)) / 2, (plot.y0 + plot.y1) / 2, colours::kFaint, text);
    return;
  }
  view_.set({plot.x0, plot.y0, plot.x1, plot.y1}, scene_->layout.width, scene_->layout.height);
  if (is_fresh()) colour_nodes();
  marks_.selection = is_fresh() ? selection() : Selection();
  picture_.draw(*scene_, view_, node_colours_, marks_);
  // The names of the lanes stay in view above the plot.
  for (std::size_t l = 0; l < kLaneCount; ++l) {
    const GraphBox& lane = scene_->layout.boxes[l];
    if (lane.width == 0) continue;
    const float x0 = std::max(view_.x_of(lane.x), plot.x0), x1 = std::min(view_.x_of(lane.right()), plot.x1);
    std::string name = lane_name(static_cast<Lane>(l));
    if (l == static_cast<std::size_t>(Lane::forward)) name += " ↓";
    if (l == static_cast<std::size_t>(Lane::backward)) name += " ↑";
    const float wide = text_width(TextSize::small, name);
    if (x1 - x0 > 24)
      draw_text_cut(TextSize::small, std::max(x0, (x0 + x1 - wide) / 2), plot.y0 - 17, x1 - x0, colours::kText, name);
  }
  draw_solving(plot, session_);
  if (!settled() && !session_.solving()) draw_plate(plot, plot.x0 + 6, plot.y1 - 24, false, colours::kHover, "laying out…");
  if (!error_.empty()) draw_plate(plot, plot.x0 + 6, plot.y0 + 6, false, colours::kProblem, error_);
  if (!is_fresh()) return;
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (!plot.contains(mouse)) {
    if (std::exchange(hovers_, false)) hover(kNone);
  } else if (!dragging_) {
    hovers_ = true;
    const GraphPicture::Hit hit = picture_.hit(mouse);
    ValueId hovered = kNone;
    if (hit.edge != kNone) {
      hovered = scene_->layout.edges[at(hit.edge)].value;
    } else if (hit.box != kNone) {
      const GraphBox& box = scene_->layout.boxes[at(hit.box)];
      hovered = box.input;
      if (box.node != kNone && scene_->model->graph().nodes[at(box.node)].n_outputs > 0)
        hovered = scene_->model->graph().nodes[at(box.node)].first_output;
    }
    hover(hovered);
    tell_about(hit);
  }
}

void GraphPanel::write_csv(const std::string& path) {
  if (session_.model() == nullptr) throw UsageError("there is no plan to write");
  finish();
  if (!scene_) throw UsageError("the graph has no layout: " + error_);
  AtomicWriter out(path);
  out.write(graph_boxes_csv(*scene_));
  out.commit();
}

std::optional<ImVec2> GraphPanel::place_of(BoxId id) const {
  if (!scene_ || id == kNone) return std::nullopt;
  const GraphBox& box = scene_->layout.boxes[at(id)];
  const ImVec2 middle(view_.x_of(box.x + box.width / 2), view_.y_of(box.y + box.height / 2));
  if (!view_.plot().contains(middle)) return std::nullopt;
  return middle;
}

BoxId GraphPanel::box_of_module(const std::string& path, Lane lane) const {
  const ModuleId m = scene_ ? scene_->find_module(path) : kNone;
  return m == kNone ? kNone : scene_->layout.boxes_of_module[at(m)][static_cast<std::size_t>(lane)];
}

}  // namespace tapedeck::viewer
