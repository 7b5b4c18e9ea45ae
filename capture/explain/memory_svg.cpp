// Draws the boxes of memory_map() as SVG. Boxes of less than a pixel go into a grid of pixels by role, and runs of equal
// pixels become one rectangle. Lines, axes and names are drawn on top.
#include <tapedeck/capture/explain/memory_svg.h>

#include <tapedeck/capture/explain/memory_map.h>
#include <tapedeck/capture/explain/svg_parts.h>
#include <tapedeck/capture/plan/arena_chunks.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace tapedeck {

namespace {

constexpr int kLeft = 96, kRight = 190, kTop = 40, kBottom = 64;  // pixels around the plot
constexpr std::size_t kMostBoxes = 4000;                          // drawn by themselves
constexpr std::size_t kMostLabels = 80;
constexpr double kCharWidth = 6.4, kLabelHeight = 12;

std::string fill_of(MemoryRole role) {
  if (role == MemoryRole::recomputed) return "url(#hatch)";
  return fmt::format("#{:06x}", memory_role_colour(role));
}

// Boxes smaller than a pixel, or beyond the limit: pixels of one role, joined to rectangles.
class Pixels {
 public:
  Pixels(int width, int height)
      : width_(width), height_(height), roles_(static_cast<std::size_t>(width) * static_cast<std::size_t>(height), -1) {}

  void cover(double x0, double y0, double x1, double y1, MemoryRole role) {
    const int left = std::clamp(static_cast<int>(x0), 0, width_ - 1),
              right = std::clamp(static_cast<int>(std::ceil(x1)), left + 1, width_);
    const int top = std::clamp(static_cast<int>(y0), 0, height_ - 1),
              bottom = std::clamp(static_cast<int>(std::ceil(y1)), top + 1, height_);
    for (int y = top; y < bottom; ++y)
      for (int x = left; x < right; ++x) at(x, y) = static_cast<signed char>(role);
  }

  // A path for each role that occurs.
  std::string paths() {
    std::array<std::string, kMemoryRoleCount> d;
    for (int y = 0; y < height_; ++y)
      for (int x = 0; x < width_; ++x)
        if (const int role = at(x, y); role >= 0) d[role] += take(x, y, role);
    std::string text;
    for (int r = 0; r < kMemoryRoleCount; ++r)
      if (!d[r].empty()) text += fmt::format("<path fill=\"{}\" d=\"{}\"/>\n", fill_of(static_cast<MemoryRole>(r)), d[r]);
    return text;
  }

 private:
  signed char& at(int x, int y) {
    return roles_[static_cast<std::size_t>(y) * static_cast<std::size_t>(width_) + static_cast<std::size_t>(x)];
  }

  // The widest run from here, as many rows down as it goes on; taken off the pixels.
  std::string take(int x, int y, int role) {
    int right = x, bottom = y + 1;
    while (right < width_ && at(right, y) == role) ++right;
    const auto row_is_full = [&](int row) {
      for (int i = x; i < right; ++i)
        if (at(i, row) != role) return false;
      return true;
    };
    while (bottom < height_ && row_is_full(bottom)) ++bottom;
    for (int row = y; row < bottom; ++row)
      for (int i = x; i < right; ++i) at(i, row) = -1;
    return fmt::format("M{} {}h{}v{}h-{}z", x, y, right - x, bottom - y, right - x);
  }

  const int width_, height_;
  std::vector<signed char> roles_;
};

class MemoryPainter {
 public:
  MemoryPainter(const Plan& plan, const SvgOptions& options)
      : plan_(plan),
        options_(options),
        map_(map_memory(plan)),
        chunks_(plan),
        live_(live_bytes(plan)),
        width_(options.width - kLeft - kRight),
        height_(options.height - kTop - kBottom),
        n_nodes_(std::max(plan.graph.node_count(), 1)),
        most_(std::max({plan.peak_bytes, plan.budget_bytes, plan.lower_bound_bytes, std::int64_t{1}})) {}

  std::string paint() {
    begin();
    axes();
    boxes();
    joints();
    phases();
    curve();
    lines();
    legend();
    svg_ += "</g>\n</svg>\n";
    return std::move(svg_);
  }

 private:
  double x_of(double node) const { return node / n_nodes_ * width_; }
  double y_of(double bytes) const { return height_ - bytes / (static_cast<double>(most_) * 1.04) * height_; }

  void text(double x, double y, const std::string& what, const char* anchor = "start", const char* extra = "") {
    svg_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\"{}>{}</text>\n", x, y, anchor, extra, xml_text(what));
  }

  void begin() {
    svg_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"DejaVu "
        "Sans,Verdana,sans-serif\" "
        "font-size=\"11\" fill=\"#e2e6ed\">\n"
        "<defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\"><rect width=\"6\" height=\"6\" "
        "fill=\"#{2:06x}\"/>"
        "<path d=\"M0 6L6 0\" stroke=\"#000\" stroke-opacity=\"0.45\"/></pattern></defs>\n"
        "<rect width=\"{0}\" height=\"{1}\" fill=\"#181b21\"/>\n",
        options_.width, options_.height, memory_role_colour(MemoryRole::recomputed));
    text(kLeft, 25, options_.title.empty() ? plan_.graph.name.str() : options_.title, "start", " font-size=\"15\"");
    svg_ += fmt::format("<g transform=\"translate({},{})\">\n<rect width=\"{}\" height=\"{}\" fill=\"#0b0d11\"/>\n", kLeft,
                        kTop, width_, height_);
  }

  void axes() {
    const SizeUnit unit = unit_for(most_);
    const double top = static_cast<double>(most_) * 1.04 / unit.bytes, step = tick_step(top, 8);
    for (double at = 0; at <= top; at += step) {
      const double y = y_of(at * unit.bytes);
      svg_ += fmt::format("<path d=\"M0 {0:.1f}H{1}\" stroke=\"#fff\" stroke-opacity=\"0.08\"/>\n", y, width_);
      text(-6, y + 4, fmt::format("{:g} {}", at, unit.name), "end", " fill=\"#929baa\"");
    }
    const double nodes = std::max(1.0, tick_step(n_nodes_, 12));
    for (double at = 0; at <= n_nodes_; at += nodes) {
      svg_ += fmt::format("<path d=\"M{0:.1f} {1}v4\" stroke=\"#929baa\"/>\n", x_of(at), height_ + 9);
      text(x_of(at), height_ + 25, fmt::format("{:g}", at), "middle", " fill=\"#929baa\"");
    }
    text(width_ / 2.0, height_ + 44, "schedule: number of the node", "middle");
    svg_ += fmt::format(
        "<text transform=\"translate(-78,{}) rotate(-90)\" text-anchor=\"middle\">address, external bytes below the "
        "arena</text>\n",
        height_ / 2);
  }

  struct Drawn {
    const MemoryBox* box;
    double x0, y0, x1, y1;
    double area() const { return (x1 - x0) * (y1 - y0); }
  };

  void boxes() {
    std::vector<Drawn> all;
    const auto add = [&](const MemoryBox& b, std::int64_t base) {
      const auto low = static_cast<double>(base + b.offset);
      all.push_back({&b, x_of(b.first), y_of(low + static_cast<double>(b.bytes)), x_of(b.last + 1.0), y_of(low)});
    };
    for (const MemoryBox& b : map_.external) add(b, 0);
    for (const MemoryBox& b : map_.arena) add(b, plan_.external_bytes);
    std::stable_sort(all.begin(), all.end(), [](const Drawn& a, const Drawn& b) { return a.area() > b.area(); });
    Pixels pixels(width_, height_);
    std::vector<Drawn> single;
    for (auto it = all.rbegin(); it != all.rend(); ++it)  // the larger over the smaller
      if (all.rend() - it > static_cast<std::ptrdiff_t>(kMostBoxes) || it->x1 - it->x0 < 1 || it->y1 - it->y0 < 1)
        pixels.cover(it->x0, it->y0, it->x1, it->y1, it->box->role);
      else
        single.push_back(*it);
    svg_ += pixels.paths();
    for (auto it = single.rbegin(); it != single.rend(); ++it) draw(*it);
    std::size_t labels = 0;
    for (auto it = single.rbegin(); it != single.rend() && labels < kMostLabels; ++it) labels += label(*it);
  }

  void draw(const Drawn& d) {
    const MemoryBox& b = *d.box;
    std::string about = fmt::format("{} {} bytes", box_name(plan_, b), b.bytes);
    if (b.value != kNone)
      about += fmt::format(", {}, {}", to_string(plan_.graph.values[b.value].type), reason_name(plan_.values[b.value].reason));
    if (b.where == Where::arena) about += fmt::format(", nodes {}..{}, at {}", b.first, b.last, place_text(b.offset));
    if (b.node != kNone && !plan_.graph.nodes[b.node].origin.site.empty())
      about += ", " + plan_.graph.nodes[b.node].origin.site.str();
    const bool outlined = d.x1 - d.x0 > 3 && d.y1 - d.y0 > 3;
    svg_ += fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"{}\"{}><title>{}</title></rect>\n", d.x0,
        d.y0, d.x1 - d.x0, d.y1 - d.y0, fill_of(b.role),
        outlined ? " stroke=\"#000\" stroke-opacity=\"0.5\" stroke-width=\"0.7\"" : "", xml_text(about));
  }

  std::string place_text(std::int64_t offset) const {
    const std::int32_t chunk = chunks_.of(offset);
    return chunks_.count() == 1 ? std::to_string(offset) : fmt::format("{} of chunk {}", offset - chunks_.start(chunk), chunk);
  }

  // The name, cut to the room that there is.
  bool label(const Drawn& d) {
    const auto room = static_cast<std::size_t>(std::max(0.0, (d.x1 - d.x0 - 6) / kCharWidth));
    if (d.y1 - d.y0 < kLabelHeight || room < 3) return false;
    std::string name = d.box->value == kNone ? "workspace" : plan_.graph.value_name(d.box->value);
    if (name.size() > room) name = name.substr(0, room - 1) + "~";
    const bool light = d.box->role == MemoryRole::output || d.box->role == MemoryRole::constant ||
                       d.box->role == MemoryRole::input || d.box->role == MemoryRole::saved;
    text((d.x0 + d.x1) / 2, (d.y0 + d.y1) / 2 + 4, name, "middle",
         light ? " fill=\"#000\" pointer-events=\"none\"" : " pointer-events=\"none\"");
    return true;
  }

  // Where one chunk of the arena ends and the next begins.
  void joints() {
    for (std::int32_t c = 1; c < chunks_.count(); ++c)
      svg_ += fmt::format(
          "<path class=\"joint\" d=\"M0 {:.1f}H{}\" stroke=\"#ff8c42\" stroke-dasharray=\"8 3\"><title>chunk {} of the arena "
          "begins here, "
          "{} bytes</title></path>\n",
          y_of(static_cast<double>(plan_.external_bytes + chunks_.start(c))), width_, c, chunks_.bytes(c));
  }

  // A strip under the plot: forward, backward, update.
  void phases() {
    constexpr const char* colours[] = {"#3e5c92", "#20705c", "#806232"};
    const std::vector<Node>& nodes = plan_.graph.nodes;
    for (std::size_t first = 0, end = 0; first < nodes.size(); first = end) {
      const Phase phase = nodes[first].origin.phase;
      while (end < nodes.size() && nodes[end].origin.phase == phase) ++end;
      const double x = x_of(static_cast<double>(first)), width = x_of(static_cast<double>(end)) - x;
      if (width >= 0.5)
        svg_ += fmt::format("<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"7\" fill=\"{}\"><title>{}</title></rect>\n",
                            x, height_ + 1, width, colours[static_cast<int>(phase)], phase_name(phase));
    }
  }

  // Live bytes: of each pixel column the most.
  void curve() {
    std::vector<std::int64_t> most(static_cast<std::size_t>(width_), -1);
    for (std::size_t n = 0; n < live_.size(); ++n) {
      const auto first = static_cast<std::size_t>(x_of(static_cast<double>(n)));
      const auto last = std::max(first + 1, static_cast<std::size_t>(x_of(static_cast<double>(n) + 1)));
      for (std::size_t x = first; x < std::min(last, most.size()); ++x) most[x] = std::max(most[x], live_[n]);
    }
    std::string d;
    for (std::size_t x = 0; x < most.size(); ++x) {
      if (most[x] < 0 || (x > 0 && most[x] == most[x - 1])) continue;
      d += d.empty() ? fmt::format("M{} {:.1f}", x, y_of(static_cast<double>(most[x])))
                     : fmt::format("H{}V{:.1f}", x, y_of(static_cast<double>(most[x])));
    }
    if (!d.empty())
      svg_ += fmt::format("<path d=\"{}H{}\" fill=\"none\" stroke=\"#fff\" stroke-opacity=\"0.75\"/>\n", d, width_);
  }

  void lines() {
    struct Line {
      std::string what;
      std::int64_t bytes;
      const char* colour;
      const char* dash;
      double y;
    };
    std::vector<Line> all = {{"peak", plan_.peak_bytes, "#ffffff", "", 0}};
    if (plan_.lower_bound_bytes != plan_.peak_bytes)
      all.push_back({"lower bound", plan_.lower_bound_bytes, "#ffdd40", "6 4", 0});
    else
      all[0].what = "peak = lower bound";
    if (plan_.budget_bytes >= 0) all.push_back({"budget", plan_.budget_bytes, "#ff5c5c", "2 3", 0});
    std::stable_sort(all.begin(), all.end(), [](const Line& a, const Line& b) { return a.bytes > b.bytes; });
    double above = -20;
    for (const Line& line : all) {
      const double y = y_of(static_cast<double>(line.bytes));
      svg_ += fmt::format("<path d=\"M0 {0:.1f}H{1}\" stroke=\"{2}\" stroke-dasharray=\"{3}\"/>\n", y, width_, line.colour,
                          line.dash);
      above = std::max(y, above + 26);  // names one below the other
      text(width_ + 8, above, line.what, "start", fmt::format(" fill=\"{}\"", line.colour).c_str());
      text(width_ + 8, above + 12, fmt::format("{} bytes", line.bytes), "start", " fill=\"#929baa\"");
    }
  }

  void legend() {
    std::array<std::int64_t, kMemoryRoleCount> bytes{};
    for (const MemoryBox& b : map_.external) bytes[static_cast<std::size_t>(b.role)] += b.bytes;
    for (const MemoryBox& b : map_.arena) bytes[static_cast<std::size_t>(b.role)] += b.bytes;
    double y = height_ - 18.0 * kMemoryRoleCount - 18;
    for (int r = 0; r < kMemoryRoleCount; ++r) {
      if (bytes[r] == 0) continue;
      svg_ += fmt::format("<rect x=\"{}\" y=\"{:.1f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n", width_ + 10, y,
                          fill_of(static_cast<MemoryRole>(r)));
      text(width_ + 28, y + 10, memory_role_name(static_cast<MemoryRole>(r)));
      y += 18;
    }
    svg_ += fmt::format("<path d=\"M{} {:.1f}h12\" stroke=\"#fff\" stroke-opacity=\"0.75\"/>\n", width_ + 10, y + 6);
    text(width_ + 28, y + 10, "alive");
    if (chunks_.count() < 2) return;
    svg_ += fmt::format("<path d=\"M{} {:.1f}h12\" stroke=\"#ff8c42\" stroke-dasharray=\"8 3\"/>\n", width_ + 10, y + 24);
    text(width_ + 28, y + 28, "joint of two chunks");
  }

  const Plan& plan_;
  const SvgOptions& options_;
  const MemoryMap map_;
  const ArenaChunks chunks_;
  const std::vector<std::int64_t> live_;
  const int width_, height_;  // of the plot
  const std::int32_t n_nodes_;
  const std::int64_t most_;
  std::string svg_;
};

}  // namespace

std::string memory_svg(const Plan& plan, const SvgOptions& options) {
  for (const int size : {options.width, options.height})
    if (size < 400 || size > 16384)
      throw UsageError(fmt::format("a picture is 400 to 16384 pixels wide and high, not {}", size));
  return MemoryPainter(plan, options).paint();
}

}  // namespace tapedeck
