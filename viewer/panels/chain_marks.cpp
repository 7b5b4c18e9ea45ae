#include <tapedeck/viewer/drawing/imgui_host.h>
#include <tapedeck/viewer/panels/chain_marks.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

namespace {

constexpr std::size_t kMostMarks = 500;  // of one chain; more of them could not be told apart

// A dashed outline, so that it differs from that of the selection and of its clones.
void dashed(const ImVec2& low, const ImVec2& high, Colour colour) {
  constexpr float kDash = 5, kGap = 4;
  for (float x = low.x; x < high.x; x += kDash + kGap)
    for (const float y : {low.y, high.y - 1})
      shapes()->AddRectFilled(ImVec2(x, y), ImVec2(std::min(x + kDash, high.x), y + 1), to_imgui(colour));
  for (float y = low.y; y < high.y; y += kDash + kGap)
    for (const float x : {low.x, high.x - 1})
      shapes()->AddRectFilled(ImVec2(x, y), ImVec2(x + 1, std::min(y + kDash, high.y)), to_imgui(colour));
}

// An arrow that points to the later value.
void takeover(float x, float y) {
  const ImVec2 tip(x + 5, y), top(x - 4, y - 5), bottom(x - 4, y + 5);
  shapes()->AddTriangleFilled(ImVec2(tip.x + 2, tip.y), ImVec2(top.x - 1, top.y - 3), ImVec2(bottom.x - 1, bottom.y + 3),
                              to_imgui(colours::kOutline));
  shapes()->AddTriangleFilled(tip, top, bottom, to_imgui(colours::kSelect));
}

}  // namespace

void ChainMarks::find(const PlanModel& model, ValueId selected) {
  if (model_ == model.serial() && selected_ == selected) return;
  model_ = model.serial();
  selected_ = selected;
  marks_.clear();
  if (selected == kNone) return;
  for (const ByteChainLink& link : byte_chain(model, selected)) {
    if (marks_.size() == kMostMarks) break;
    const Reason reason = model.plan().values[static_cast<std::size_t>(link.value)].reason;
    const PlanRect place = place_in_plan(model, link.value);
    if (place.bytes > 0) marks_.push_back({place, reason == Reason::in_place || reason == Reason::update});
  }
}

void ChainMarks::draw(const Plot& plot, const PlanModel& model, ValueId selected) {
  find(model, selected);
  for (const Mark& mark : marks_) {
    const PlanRect& r = mark.place;
    const ImVec2 low(std::round(std::clamp(plot.x_of(r.begin), plot.x0 - 2, plot.x1 + 2)),
                     std::round(std::clamp(plot.y_of(static_cast<double>(r.address + r.bytes)), plot.y0 - 2, plot.y1 + 2)));
    const ImVec2 high(std::round(std::clamp(plot.x_of(r.end), plot.x0 - 2, plot.x1 + 2)),
                      std::round(std::clamp(plot.y_of(static_cast<double>(r.address)), plot.y0 - 2, plot.y1 + 2)));
    if (high.x <= plot.x0 || low.x >= plot.x1 || high.y <= plot.y0 || low.y >= plot.y1) continue;
    if (r.value != selected) dashed(low, ImVec2(std::max(high.x, low.x + 2), std::max(high.y, low.y + 2)), colours::kSelect);
    if (mark.in_place) takeover(low.x, (low.y + high.y) / 2);
  }
}

}  // namespace tapedeck::viewer
