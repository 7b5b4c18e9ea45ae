// Draws the curves. Strategies often choose the same plans, so the first curve is the thickest and each later one is drawn
// thinner on top of it: all of them can be seen.
#include <tapedeck/capture/explain/tradeoff_svg.h>

#include <tapedeck/capture/explain/svg_parts.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

namespace tapedeck {

namespace {

constexpr int kWidth = 1000, kHeight = 600;                                       // pixels
constexpr int kPlotLeft = 84, kPlotRight = 220, kPlotTop = 56, kPlotBottom = 76;  // around the plot
constexpr double kPlotWidth = kWidth - kPlotLeft - kPlotRight, kPlotHeight = kHeight - kPlotTop - kPlotBottom;
constexpr const char* kColours[] = {"#4fa3ff", "#ff9f43", "#5fd38d", "#e76f9a", "#b28dff", "#f4d35e",
                                    "#4dd0e1", "#c0855a", "#ff6b6b", "#c5e86c", "#8f9bb3", "#e0a3ff"};
constexpr double kThinnest = 1.5, kThickest = 7, kThinner = 2;  // pixels: of curves, and from one curve to the next at most
constexpr const char* kDim = "#929baa";

// The numbers from `low` to `high` of an axis, with room at both ends.
struct Range {
  double low, high;
  Range(double from, double to, double least) : low(from), high(std::max(to, from + least)) {
    const double room = 0.05 * (high - low);
    low -= room, high += room;
  }
  double part(double at) const { return (at - low) / (high - low); }
};

class TradeoffPainter {
 public:
  TradeoffPainter(const Tradeoff& found, const std::string& title)
      : found_(found),
        title_(title),
        unit_(unit_for(found.keep_all_peak_bytes)),
        x_(in_unit(found.floor_bytes), in_unit(found.keep_all_peak_bytes), in_unit(found.keep_all_peak_bytes) * 0.01 + 1e-9),
        y_(least_ratio(), most_ratio(), 0.01) {}

  std::string paint() {
    begin();
    cost_axis();
    budget_axis();
    mark(found_.floor_bytes, "floor", "start", 6);
    mark(found_.keep_all_peak_bytes, "keep-all peak", "end", -6);
    for (std::size_t c = 0; c < found_.curves.size(); ++c) curve(c);
    bound();
    svg_ += "</g>\n</svg>\n";
    return std::move(svg_);
  }

 private:
  double in_unit(std::int64_t bytes) const { return static_cast<double>(bytes) / unit_.bytes; }
  double x_of(std::int64_t bytes) const { return x_.part(in_unit(bytes)) * kPlotWidth; }
  double y_of(double ratio) const { return (1 - y_.part(ratio)) * kPlotHeight; }
  double bound_ratio(const TradeoffPoint& p) const { return p.cost_lower_bound_us / std::max(found_.keep_all_cost_us, 1e-12); }

  template <class Take>
  void each_shown(Take take) const {
    for (const TradeoffCurve& c : found_.curves)
      for (const TradeoffPoint& p : c.points) {
        if (p.feasible) take(p.cost_ratio);
        if (p.cost_lower_bound_us > 0) take(bound_ratio(p));
      }
  }
  double least_ratio() const {
    double least = 1;
    each_shown([&](double ratio) { least = std::min(least, ratio); });
    return least;
  }
  double most_ratio() const {
    double most = 1;
    each_shown([&](double ratio) { most = std::max(most, ratio); });
    return most;
  }

  void text(double x, double y, const std::string& what, const char* anchor, const char* fill, const char* extra = "") {
    svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\"{}>{}</text>\n", x, y, anchor, fill,
                        extra, xml_text(what));
  }

  void begin() {
    svg_ += fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" font-family=\"DejaVu "
        "Sans,Verdana,sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#181b21\"/>\n",
        kWidth, kHeight);
    text(kPlotLeft, 26, title_ + ": cost of a step over its memory budget", "start", "#e2e6ed", " font-size=\"16\"");
    text(kPlotLeft, 44,
         fmt::format("keep-all cost {:.0f} us, costs: {}{}", found_.keep_all_cost_us, found_.costs,
                     found_.complete ? "" : "; interrupted, so points are missing"),
         "start", kDim);
    svg_ += fmt::format("<g transform=\"translate({},{})\">\n<rect width=\"{}\" height=\"{}\" fill=\"#0b0d11\"/>\n", kPlotLeft,
                        kPlotTop, kPlotWidth, kPlotHeight);
  }

  void cost_axis() {
    const double step = tick_step(y_.high - y_.low, 8);
    for (double k = std::ceil(y_.low / step); k * step <= y_.high; ++k) {
      const double y = y_of(k * step);
      svg_ += fmt::format("<path d=\"M0 {:.1f}H{}\" stroke=\"#fff\" stroke-opacity=\"0.1\"/>\n", y, kPlotWidth);
      text(-8, y + 4, fmt::format("\u00d7{:.6g}", k * step), "end", kDim);
    }
    svg_ += fmt::format(
        "<text transform=\"translate(-66,{}) rotate(-90)\" text-anchor=\"middle\" fill=\"#e2e6ed\">cost, as a multiple of "
        "keeping everything</text>\n",
        kPlotHeight / 2);
  }

  // Under each budget its share of the peak with everything kept.
  void budget_axis() {
    const double step = tick_step(x_.high - x_.low, 8);
    for (double k = std::max(std::ceil(x_.low / step), 0.0); k * step <= x_.high; ++k) {
      const double x = x_.part(k * step) * kPlotWidth, peak = std::max(in_unit(found_.keep_all_peak_bytes), 1e-12);
      svg_ += fmt::format("<path d=\"M{:.1f} 0V{}\" stroke=\"#fff\" stroke-opacity=\"0.1\"/>\n", x, kPlotHeight);
      text(x, kPlotHeight + 18, fmt::format("{:.6g}", k * step), "middle", kDim);
      text(x, kPlotHeight + 33, fmt::format("{:.0f} %", 100 * k * step / peak), "middle", kDim, " font-size=\"10\"");
    }
    text(kPlotWidth / 2, kPlotHeight + 58, fmt::format("budget in {}, and as a share of the keep-all peak", unit_.name),
         "middle", "#e2e6ed");
  }

  void mark(std::int64_t bytes, const char* name, const char* anchor, double aside) {
    const double x = x_of(bytes);
    svg_ += fmt::format("<path d=\"M{:.1f} 0V{}\" stroke=\"{}\" stroke-dasharray=\"2 4\"/>\n", x, kPlotHeight, kDim);
    text(x + aside, kPlotHeight - 8, name, anchor, kDim);
  }

  void line(const std::string& d, const char* colour, double width, const char* extra) {
    svg_ += fmt::format("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\" stroke-linejoin=\"round\"{}/>\n", d,
                        colour, width, extra);
  }

  static void extend(double x, double y, std::string* d) { *d += fmt::format("{}{:.1f} {:.1f}", d->empty() ? 'M' : 'L', x, y); }

  // A sample of the line beside the plot, and its name.
  void in_legend(const std::string& name, const char* colour, double width, const char* extra) {
    const double y = 14 + 24 * legend_rows_++;
    line(fmt::format("M{} {}h30", kPlotWidth + 16, y), colour, width, extra);
    text(kPlotWidth + 54, y + 4, name, "start", "#e2e6ed");
  }

  void curve(std::size_t c) {
    const TradeoffCurve& curve = found_.curves[c];
    const char* colour = kColours[c % std::size(kColours)];
    const auto curves = static_cast<double>(found_.curves.size()), after = curves - 1 - static_cast<double>(c);
    const double width = kThinnest + after * std::min(kThinner, (kThickest - kThinnest) / std::max(curves - 1, 1.0));
    std::string d, dots;
    for (const TradeoffPoint& p : curve.points) {
      if (!p.feasible) continue;
      const double x = x_of(p.budget_bytes), y = y_of(p.cost_ratio);
      extend(x, y, &d);
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"{}\"><title>{}</title></circle>\n", x, y,
                          2 + width / 2, colour, xml_text(told(curve, p)));
    }
    if (!d.empty()) line(d, colour, width, "");
    svg_ += dots;
    in_legend(d.empty() ? curve.name + " (no plan fits)" : curve.name, colour, width, "");
  }

  static std::string told(const TradeoffCurve& curve, const TradeoffPoint& p) {
    return fmt::format("{}: budget {} bytes, peak {} bytes, cost {:.6g} us, {:.5f} of keep-all, {} nodes recomputed",
                       curve.name, p.budget_bytes, p.peak_bytes, p.cost_us, p.cost_ratio, p.recomputed_nodes);
  }

  // The bound is one of the graph, so one curve tells it.
  void bound() {
    constexpr const char* kDashes = " stroke-dasharray=\"7 5\"";
    std::string d;
    if (!found_.curves.empty())
      for (const TradeoffPoint& p : found_.curves.front().points)
        if (p.cost_lower_bound_us > 0) extend(x_of(p.budget_bytes), y_of(bound_ratio(p)), &d);
    if (d.empty()) return;
    line(d, "#ffffff", 1.5, kDashes);
    in_legend("no plan costs less", "#ffffff", 1.5, kDashes);
  }

  const Tradeoff& found_;
  const std::string& title_;
  const SizeUnit unit_;
  const Range x_, y_;
  int legend_rows_ = 0;
  std::string svg_;
};

}  // namespace

std::string tradeoff_svg(const Tradeoff& tradeoff, const std::string& title) {
  return TradeoffPainter(tradeoff, title).paint();
}

}  // namespace tapedeck
