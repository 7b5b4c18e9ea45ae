// Draws a schedule. Its axis is the time of the run; the view of the window, which counts nodes or microseconds of one thread,
// is translated to it and back. Boxes that are thinner than a pixel become one: a lane is walked pixel by pixel, and the boxes
// of a pixel are skipped by bisection, so a frame costs no more for 100,000 nodes than for a thousand.
//
//     thread 1   ▔▔▔▔ segment ▔▔▔▔ ▔▔▔▔▔▔        critical segments are bright
//     busy 80 %  | conv2d | relu | | matmul |    idle gaps are empty, with their length
#include <tapedeck/viewer/panels/schedule.h>

#include <tapedeck/viewer/plan/explain.h>
#include <tapedeck/viewer/words/format.h>
#include <tapedeck/viewer/words/ticks.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/words/index.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace tapedeck::viewer {

namespace {

constexpr float kLeft = 96, kRight = 16, kAxis = 26;
constexpr float kMostHeight = 92, kScheduleGap = 6, kStrip = 7;
constexpr int kClones = 3;

Colour phase_of(const Node& node) { return phase_colour(node.origin.clone ? kClones : static_cast<int>(node.origin.phase)); }

// Fine lines, which mean that nothing runs here.
void hatch(float x0, float y0, float x1, float y1) {
  shapes()->PushClipRect(ImVec2(x0, y0), ImVec2(x1, y1), true);
  const float height = y1 - y0;
  for (float x = std::floor((x0 - height) / 9) * 9; x < x1; x += 9)
    shapes()->AddLine(ImVec2(x, y1), ImVec2(x + height, y0), to_imgui(colours::kGrid));
  shapes()->PopClipRect();
}

using Boxes = std::vector<ScheduleBox>;

// The next box to draw when all up to `end` is drawn: of the boxes that begin before, the last one may go on behind it.
Boxes::const_iterator behind_pixel(const Boxes& boxes, Boxes::const_iterator drawn, double end) {
  const auto next = std::partition_point(drawn + 1, boxes.end(), [&](const ScheduleBox& b) { return b.start_us < end; });
  return next - 1 != drawn && (next - 1)->end_us > end ? next - 1 : next;
}

void sentences_tooltip(const std::vector<std::string>& sentences, const std::string& action) {
  std::string rest;
  for (std::size_t i = 1; i < sentences.size(); ++i) rest += (i > 1 ? "\n" : "") + sentences[i];
  explained_tooltip(sentences.front(), rest, action);
}

}  // namespace

// ---- the schedule, in the background ----

std::int32_t SchedulePanel::threads() const {
  if (threads_ > 0 || session_.model() == nullptr) return std::max(threads_, 1);
  return std::clamp(session_.model()->plan().threads, 1, kMostThreads);
}

void SchedulePanel::set_threads(std::int32_t threads) {
  threads_ = std::clamp(threads, 1, kMostThreads);
  measured_ = false;
  repaint();
}

bool SchedulePanel::has_measured() const {
  const MeasuredRun* run = session_.model() == nullptr ? nullptr : session_.measurements().of_plan(*session_.model());
  return run != nullptr && run->timeline != nullptr;
}

void SchedulePanel::show_measured(bool on) {
  measured_ = on;
  repaint();
}

SchedulePanel::Key SchedulePanel::wanted() const {
  if (session_.model() == nullptr) return {};
  if (measured_ && has_measured()) return {session_.model()->serial(), session_.measured_serial(), 0};
  return {session_.model()->serial(), 0, threads()};
}

bool SchedulePanel::settled() const { return schedule_ != nullptr && key_ == wanted(); }

void SchedulePanel::start() {
  const Key key = wanted();
  if (key == asked_ || session_.model() == nullptr) return;
  asked_ = key;
  std::shared_ptr<const Timeline> step;
  std::int32_t threads = key.threads;
  if (key.measured != 0) {
    const MeasuredRun& run = *session_.measurements().of_plan(*session_.model());
    step = run.timeline;
    threads = run.threads;
  }
  task_.run([mail = mail_, key, step, threads, model = session_.shared_model(),
             wake = wake_function()](const std::atomic<bool>& cancelled) {
    auto schedule = std::make_shared<const Schedule>(step ? Schedule::measured(*model, *step, threads)
                                                          : Schedule::planned(*model, threads));
    if (cancelled) return;
    {
      std::lock_guard lock(mail->mutex);
      mail->schedule = std::move(schedule);
      mail->key = key;
    }
    if (wake) wake();
  });
}

void SchedulePanel::arrive() {
  std::lock_guard lock(mail_->mutex);
  if (!mail_->schedule || !(mail_->key == asked_)) return;
  schedule_ = std::exchange(mail_->schedule, nullptr);
  key_ = mail_->key;
  followed_ = {{-1, -1}, {}};  // the same nodes are elsewhere now
}

void SchedulePanel::finish() {
  start();
  task_.wait();
  arrive();
}

void SchedulePanel::stop() {
  task_.cancel();
  task_.wait();
}

void SchedulePanel::closed() {
  task_.cancel();
  {
    std::lock_guard lock(mail_->mutex);
    mail_->schedule.reset();
  }
  schedule_.reset();
  key_ = asked_ = {};
  threads_ = 0;
  measured_ = true;
  coloured_model_ = 0;
  PicturePanel::closed();
}

// ---- the view ----

float SchedulePanel::x_of(double us) const {
  return plot_.x0 + static_cast<float>((us - plot_.across.low) / plot_.across.size()) * plot_.width();
}

// Takes the view of the window, unless it is the one that this picture asked for.
void SchedulePanel::follow_view() {
  if (session_.view == followed_) return;
  followed_ = session_.view;
  const Range nodes = session_.time_axis()->nodes_of(session_.view.time);
  Range us = schedule_->axis().range_of(nodes);
  const double least = std::max(schedule_->length_us() * 1e-6, 1e-6);
  if (us.size() < least) us = {us.at(0.5) - least / 2, us.at(0.5) + least / 2};
  own_.view.time = us;
  own_.view.time.clamp(0, std::max(schedule_->length_us(), 1e-6));
}

void SchedulePanel::navigate() {
  const PlanView before = own_.view;
  navigation_.update(plot_, own_, false);
  own_.view.time.clamp(0, std::max(schedule_->length_us(), 1e-6));
  if (own_.cursor.picture != nullptr) {
    const double node = schedule_->axis().node_at(own_.cursor.time);
    session_.cursor = {this, session_.time_axis()->at(node)};
  } else if (session_.cursor.picture == this) {
    session_.cursor = {};
  }
  if (own_.view == before) return;
  const TimeAxis& axis = *session_.time_axis();
  Range shown = axis.range_of(schedule_->axis().nodes_of(own_.view.time));
  if (shown.size() < axis.least_size()) shown = {shown.low, shown.low + axis.least_size()};
  session_.view.time = shown;
  session_.view_changed(navigation_.dragging ? Gesture::drag : Gesture::wheel);
  followed_ = session_.view;
  plot_.across = own_.view.time;
}

// ---- drawing ----

SchedulePanel::Row SchedulePanel::row_of(std::int32_t lane) const {
  const float each = std::min(plot_.height() / static_cast<float>(std::max(schedule_->threads(), 1)), kMostHeight);
  const float top = plot_.y0 + std::round(each * static_cast<float>(lane)) + std::min(kScheduleGap / 2, each * 0.1f);
  const float bottom = plot_.y0 + std::round(each * static_cast<float>(lane + 1)) - std::min(kScheduleGap / 2, each * 0.1f);
  return {top, each > 24 ? top + kStrip : top, std::max(bottom, top + 1)};
}

std::int32_t SchedulePanel::lane_at(float y) const {
  for (std::int32_t lane = 0; lane < schedule_->threads(); ++lane) {
    const Row row = row_of(lane);
    if (y >= row.top && y < row.bottom) return lane;
  }
  return kNone;
}

// By phase, or by the group of the bytes that the node makes.
void SchedulePanel::colour_nodes() {
  const PlanModel& model = *session_.model();
  const bool same =
      coloured_model_ == model.serial() && coloured_by_ == session_.colour_by() && coloured_theme_ == theme_in_use();
  if (same) return;
  coloured_model_ = model.serial();
  coloured_by_ = session_.colour_by();
  coloured_theme_ = theme_in_use();
  node_colours_.clear();
  const bool by_phase = coloured_by_ == ColourBy::role;
  for (const Node& node : model.graph().nodes) node_colours_.push_back(by_phase ? phase_of(node) : others_colour());
  if (by_phase) return;
  const PlanColours& colours = session_.colours();
  for (std::size_t i = 0; i < model.rects().size(); ++i)
    if (const NodeId n = model.rects()[i].node; n != kNone) node_colours_[at(n)] = colours.colour_of(i);
}

void SchedulePanel::draw_controls(float x, float y) {
  if (has_measured()) {
    const std::string other = measured_ ? "show planned" : "show measured";
    if (draw_button(x, y, other)) show_measured(!measured_);
    x += text_width(TextSize::body, other) + 22;
  }
  if (measured_ && has_measured()) return;
  if (draw_button(x, y, "-")) set_threads(threads() - 1);
  if (draw_button(x + 26, y, "+")) set_threads(threads() + 1);
  draw_text(TextSize::small, x + 56, y + 4, colours::kFaint, "threads");
}

float SchedulePanel::draw_head(float width) {
  const bool measured = schedule_->is_measured();
  const std::string title = std::string("Schedule, ") + (measured ? "measured" : "planned") +
                            (session_.document() != nullptr ? " · " + session_.document()->title() : "");
  draw_text_cut(TextSize::title, 12, 6, width - 260, colours::kText, title);
  const std::string source =
      measured ? "one step of a replay; who helps with a kernel is not measured"
               : "estimate: a simulated run by the costs of the plan (" + session_.model()->plan().costs + ")";
  draw_text_cut(TextSize::small, 12, 28, width - 24, colours::kText, schedule_summary(*schedule_) + " · " + source);
  if (is_under_mouse(12, 28, width - 24)) {
    sentences_tooltip({"What the numbers say",
                       "Busy: the share of the time of all threads in which they run nodes, start segments, or help with the "
                       "kernel of another thread (paler). Idle: the rest, summed over the threads.",
                       "Critical path: the longest chain of segments that wait for each other. No number of threads is done "
                       "before it; its segments have a bright line."},
                      "");
  }
  float x = 12;
  const char* names[] = {"forward", "backward", "update", "recompute"};
  for (int phase = 0; phase < 4 && session_.colour_by() == ColourBy::role; ++phase) {
    fill_box(x, 48, x + 11, 59, phase_colour(phase));
    draw_text(TextSize::small, x + 16, 47, colours::kText, names[phase]);
    x += 30 + text_width(TextSize::small, names[phase]);
  }
  float used = 0;
  if (session_.colour_by() != ColourBy::role) {
    used = draw_legend(x, 47, width - x - 220, session_.colours()) - 17;
    x = width - 210;
  }
  fill_box(x, 50, x + 20, 50 + 4, colours::kHover);
  draw_text(TextSize::small, x + 26, 47, colours::kText, "critical path");
  x += 40 + text_width(TextSize::small, "critical path");
  hatch(x, 48, x + 20, 59);
  shapes()->AddRect(ImVec2(x, 48), ImVec2(x + 20, 59), to_imgui(colours::kGrid));
  draw_text(TextSize::small, x + 26, 47, colours::kText, "idle");
  if (schedule_->threads() > 1 && !measured)
    draw_text_cut(TextSize::small, x + 64, 47, std::max(width - x - 76, 1.0f), colours::kFaint,
                  "pale: helps with the kernel of another thread");
  draw_controls(std::max(width - 230, 12.0f), 4);
  return 70 + used;
}

void SchedulePanel::draw_segments(const ScheduleLane& lane, const Row& row) {
  if (row.strip <= row.top) return;
  const std::vector<ScheduleBox>& boxes = lane.boxes;
  const double pixel = plot_.across.size() / static_cast<double>(plot_.width());
  const auto first =
      std::partition_point(boxes.begin(), boxes.end(), [&](const ScheduleBox& b) { return b.end_us <= plot_.across.low; });
  for (auto box = first; box != boxes.end() && box->start_us < plot_.across.high;) {
    if (box->segment == kNone) {
      box = behind_pixel(boxes, box, box->start_us + pixel);
      continue;
    }
    const SegmentTimes& segment = schedule_->segment(box->segment);
    const float x0 = x_of(segment.start_us), x1 = std::max(x_of(segment.end_us) - 1, x0 + 1);
    fill_box(std::max(x0, plot_.x0), row.top, std::min(x1, plot_.x1), row.strip - 2,
             segment.is_critical ? colours::kHover : colours::kFrame);
    box = behind_pixel(boxes, box, std::max(segment.end_us, box->start_us + pixel));
  }
}

void SchedulePanel::draw_boxes(const ScheduleLane& lane, const Row& row) {
  const std::vector<ScheduleBox>& boxes = lane.boxes;
  const PlanModel& model = *session_.model();
  const Selection& selection = session_.selection();
  const double pixel = plot_.across.size() / static_cast<double>(plot_.width());
  auto box =
      std::partition_point(boxes.begin(), boxes.end(), [&](const ScheduleBox& b) { return b.end_us <= plot_.across.low; });
  while (box != boxes.end() && box->start_us < plot_.across.high) {
    const float x0 = std::max(x_of(box->start_us), plot_.x0), x1 = std::min(x_of(box->end_us), plot_.x1);
    const bool helps = box->segment == kNone;
    Colour colour = box->node == kNone ? colours::kFrame : node_colours_[at(box->node)];
    if (helps) colour = mixed(colours::kPlot, colour, 0.5);
    if (x1 - x0 >= 2) {
      fill_box(x0, row.strip, x1 - 1, row.bottom, colour);
      if (box->node != kNone && x1 - x0 > 44 && row.bottom - row.strip > 15) {
        const std::string name = (helps ? "helps with " : "") + std::string(model.graph().nodes[at(box->node)].op->name);
        draw_text_cut(TextSize::small, x0 + 4, (row.strip + row.bottom) / 2 - 7, x1 - x0 - 8, text_on(colour), name);
      }
      ++box;
      continue;
    }
    // All boxes that begin in this pixel are one, with the colour of the first.
    if (box->node == kNone && box + 1 != boxes.end() && (box + 1)->node != kNone) colour = node_colours_[at((box + 1)->node)];
    fill_box(std::floor(x0), row.strip, std::floor(x0) + 1, row.bottom, colour);
    box = behind_pixel(boxes, box, box->start_us + pixel);
  }
  const auto outline = [&](NodeId n, Colour line) {
    const auto [on, index] = n == kNone ? std::pair(kNone, kNone) : schedule_->place_of(n);
    if (on == kNone || &schedule_->lanes()[at(on)] != &lane) return;
    const ScheduleBox& chosen = boxes[at(index)];
    const float x0 = x_of(chosen.start_us), x1 = std::max(x_of(chosen.end_us), x0 + 2);
    if (x1 < plot_.x0 || x0 > plot_.x1) return;
    shapes()->AddRect(ImVec2(x0 - 1, row.strip - 1), ImVec2(x1, row.bottom + 1), to_imgui(colours::kOutline), 0, 0, 4);
    shapes()->AddRect(ImVec2(x0 - 1, row.strip - 1), ImVec2(x1, row.bottom + 1), to_imgui(line), 0, 0, 2);
  };
  if (selection.hovered != kNone) outline(model.graph().values[at(selection.hovered)].node, colours::kHover);
  for (const ValueId copy : selection.copies) outline(model.graph().values[at(copy)].node, colours::kSelect);
  outline(selection.node, colours::kSelect);
}

// The gaps that can be seen, with their length where it fits.
void SchedulePanel::draw_gaps(const ScheduleLane& lane, const Row& row) {
  const std::vector<ScheduleBox>& boxes = lane.boxes;
  const double pixel = plot_.across.size() / static_cast<double>(plot_.width());
  const auto gap = [&](double from, double to) {
    const float x0 = std::max(x_of(from), plot_.x0), x1 = std::min(x_of(to), plot_.x1);
    if (x1 - x0 < 4) return;
    hatch(x0, row.strip, x1, row.bottom);
    const std::string text = "idle " + human_us(to - from);
    if (const float wide = text_width(TextSize::small, text); x1 - x0 > wide + 10 && row.bottom - row.strip > 15)
      draw_text(TextSize::small, (x0 + x1 - wide) / 2, (row.strip + row.bottom) / 2 - 7, colours::kFaint, text);
  };
  auto box =
      std::partition_point(boxes.begin(), boxes.end(), [&](const ScheduleBox& b) { return b.end_us <= plot_.across.low; });
  double end = box == boxes.begin() ? 0 : (box - 1)->end_us;
  while (box != boxes.end() && box->start_us < plot_.across.high) {
    if (box->start_us - end > 4 * pixel) gap(end, box->start_us);
    end = box->end_us;
    // Boxes that begin within the next pixel leave no gap that can be seen.
    const double limit = std::max(box->start_us + pixel, end);
    auto next = std::partition_point(box + 1, boxes.end(), [&](const ScheduleBox& b) { return b.start_us < limit; });
    if (next != box + 1) end = std::max(end, (next - 1)->end_us);
    box = next;
  }
  if (box == boxes.end()) gap(end, schedule_->length_us());
}

void SchedulePanel::draw_lane(std::int32_t number, const Row& row) {
  const ScheduleLane& lane = schedule_->lanes()[at(number)];
  if (row.bottom - row.top > 12) {
    draw_text(TextSize::small, 12, row.top, colours::kText, "thread " + std::to_string(number + 1));
    if (row.bottom - row.top > 27)
      draw_text(TextSize::small, 12, row.top + 14, colours::kFaint, "busy " + percent(schedule_->busy_share(lane)));
  }
  shapes()->PushClipRect(ImVec2(plot_.x0, row.top - 2), ImVec2(plot_.x1, row.bottom + 2), true);
  draw_gaps(lane, row);
  draw_segments(lane, row);
  draw_boxes(lane, row);
  shapes()->PopClipRect();
}

void SchedulePanel::draw_axis() {
  const TimeTicks times = time_ticks(plot_.across.low, plot_.across.high, schedule_->length_us(),
                                     std::max(2, static_cast<int>(plot_.width() / 80)));
  const std::string unit = times.unit;
  draw_text(TextSize::small, plot_.x1 - text_width(TextSize::small, unit), plot_.y1 + 6, colours::kFaint, unit);
  for (const Tick& tick : times.ticks) {
    const float x = std::round(x_of(tick.at)), wide = text_width(TextSize::small, tick.label);
    fill_box(x, plot_.y0, x + 1, plot_.y1 + 4, colours::kGrid);
    if (x + wide / 2 < plot_.x1 - text_width(TextSize::small, unit) - 8)
      draw_text(TextSize::small, std::max(x - wide / 2, 2.0f), plot_.y1 + 6, colours::kFaint, tick.label);
  }
}

void SchedulePanel::draw(float width, float height) {
  if (draw_nothing(width, height)) return;
  start();
  arrive();
  if (!schedule_ || key_.model != session_.model()->serial())
    return draw_text(TextSize::body, 12, 12, colours::kFaint, "working out the schedule…");
  colour_nodes();
  const float top = draw_head(width);
  follow_view();
  plot_ = make_plot(kLeft, top, width - kRight, height - kAxis, own_.view.time, {0, 1});
  navigate();
  draw_plot_ground(plot_);
  draw_axis();
  for (std::int32_t lane = 0; lane < schedule_->threads(); ++lane) draw_lane(lane, row_of(lane));
  draw_solving(plot_, session_);
  hover();
}

// ---- the mouse ----

void SchedulePanel::hover() {
  const ImVec2 mouse = ImGui::GetIO().MousePos;
  if (!plot_.contains(mouse)) return;
  const PlanModel& model = *session_.model();
  const std::int32_t lane = lane_at(mouse.y);
  const double us = plot_.across_at(mouse.x), pixel = plot_.across.size() / static_cast<double>(plot_.width());
  NodeId node = kNone;
  if (lane != kNone) {
    const std::vector<ScheduleBox>& boxes = schedule_->lanes()[at(lane)].boxes;
    const std::int32_t index = schedule_->box_at(lane, us);
    const bool is_box = at(index) < boxes.size() && boxes[at(index)].start_us <= us + pixel;
    if (is_box) node = boxes[at(index)].node;
    if (!navigation_.dragging)
      sentences_tooltip(is_box ? box_sentences(*schedule_, model, lane, index) : gap_sentences(*schedule_, model, lane, us),
                        node == kNone ? "" : "Click selects it in all panels");
  }
  const bool makes = node != kNone && model.graph().nodes[at(node)].n_outputs > 0;
  session_.hover(makes ? model.graph().nodes[at(node)].first_output : kNone);
  if (navigation_.double_clicked)
    session_.fit_all();
  else if (navigation_.clicked && node != kNone)
    session_.select_node(node);
}

ImVec2 SchedulePanel::place_at(std::int32_t lane, double us) const {
  const Row row = row_of(lane);
  return ImVec2(x_of(us), (row.strip + row.bottom) / 2);
}

ImVec2 SchedulePanel::place_of(NodeId n) const {
  const auto [lane, index] = schedule_->place_of(n);
  const ScheduleBox& box = schedule_->lanes()[at(lane)].boxes[at(index)];
  return place_at(lane, (box.start_us + box.end_us) / 2);
}

void SchedulePanel::write_csv(const std::string& path) {
  if (session_.model() == nullptr) throw UsageError("there is no plan to write");
  finish();
  AtomicWriter out(path);
  out.write(schedule_csv(*schedule_, *session_.model()));
  out.commit();
}

}  // namespace tapedeck::viewer
