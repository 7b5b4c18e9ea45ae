#include <tapedeck/viewer/panels/range_box.h>

#include <tapedeck/viewer/words/format.h>

#include <algorithm>
#include <cmath>

namespace tapedeck::viewer {

namespace {

constexpr float kLine = 15, kMargin = 8;
constexpr float kColumns[] = {0, 90, 170, 250, 345, 440};  // of the rows; the last is the width

ImDrawList* list() { return ImGui::GetWindowDrawList(); }

std::string signed_bytes(std::int64_t bytes) { return (bytes < 0 ? "-" : "+") + human_bytes(bytes < 0 ? -bytes : bytes); }

std::string counted(std::int64_t bytes, std::int64_t count) {
  return count == 0 ? "-" : human_bytes(bytes) + " (" + grouped(count) + ")";
}

std::vector<std::string> row(const std::string& name, const RangeBytes& bytes) {
  return {name, human_bytes(bytes.at_first), human_bytes(bytes.at_last), counted(bytes.born, bytes.born_count),
          counted(bytes.died, bytes.died_count)};
}

void draw_band(const Plot& plot, float x0, float x1) {
  list()->AddRectFilled(ImVec2(x0, plot.y0), ImVec2(x1, plot.y1), to_imgui(colours::kSelect, 40));
  for (const float x : {x0, x1}) list()->AddRectFilled(ImVec2(x, plot.y0), ImVec2(x + 1, plot.y1), to_imgui(colours::kSelect));
}

}  // namespace

std::vector<std::string> range_lines(const RangeTotals& totals) {
  const NodeRange& range = totals.range;
  return {"nodes " + grouped(range.first) + " to " + grouped(range.last) + " (" + grouped(range.last - range.first + 1) +
              "): " + signed_bytes(totals.all.at_last - totals.all.at_first),
          "most " + human_bytes(totals.most) + " at node " + grouped(totals.most_at) + ", least " + human_bytes(totals.least) +
              " at node " + grouped(totals.least_at)};
}

std::vector<std::vector<std::string>> range_rows(const RangeTotals& totals) {
  std::vector<std::vector<std::string>> rows{{"role", "at first", "at last", "born", "died"}, row("all", totals.all)};
  for (int i = 0; i < kRoleClassCount; ++i) {
    const auto role = static_cast<RoleClass>(i);
    const RangeBytes& bytes = totals.of(role);
    if (bytes.at_first != 0 || bytes.at_last != 0 || bytes.born_count != 0 || bytes.died_count != 0)
      rows.push_back(row(role_class_name(role), bytes));
  }
  return rows;
}

void draw_range_box(const Plot& plot, const RangeTotals& totals) {
  const float x0 = std::clamp(std::round(plot.x_of(totals.range.first)), plot.x0, plot.x1),
              x1 = std::clamp(std::round(plot.x_of(totals.range.last + 1)), plot.x0, plot.x1);
  draw_band(plot, x0, x1);
  const std::vector<std::string> lines = range_lines(totals);
  const std::vector<std::vector<std::string>> rows = range_rows(totals);
  const float width = kColumns[5] + 2 * kMargin, height = static_cast<float>(lines.size() + rows.size()) * kLine + 2 * kMargin;
  float left = x1 + 8;
  if (left + width > plot.x1) left = x0 - 8 - width;
  if (left < plot.x0) left = plot.x1 - width - 8;
  left = std::round(std::max(left, plot.x0));
  float y = std::max(plot.y0 + 4, 0.0f);
  list()->AddRectFilled(ImVec2(left, y), ImVec2(left + width, y + height), to_imgui(colours::kPlot, 235));
  list()->AddRect(ImVec2(left, y), ImVec2(left + width, y + height), to_imgui(colours::kSelect));
  y += kMargin;
  for (const std::string& line : lines) {
    draw_text(TextSize::small, left + kMargin, y, colours::kText, line);
    y += kLine;
  }
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < rows[r].size(); ++c) {
      const float x = left + kMargin + (c == 0 ? 0 : kColumns[c + 1] - text_width(TextSize::small, rows[r][c]) - 8);
      draw_text(TextSize::small, x, y, r == 0 ? colours::kFaint : colours::kText, rows[r][c]);
    }
    y += kLine;
  }
}

}  // namespace tapedeck::viewer
