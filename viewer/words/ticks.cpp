#include <tapedeck/viewer/words/ticks.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace tapedeck::viewer {

namespace {

double round_step(double range, int most) {
  const double raw = std::max(range / std::max(most, 1), 1e-12);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0, 10.0})
    if (factor * power >= raw * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::vector<Tick> ticks_by(double low, double high, double step, double scale) {
  std::vector<Tick> ticks;
  if (!(high > low)) return ticks;
  const int decimals = step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9));
  for (double i = std::ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && ticks.size() < 1000; ++i) {
    char text[48];
    std::snprintf(text, sizeof text, "%.*f", decimals, i * step + 0.0);
    ticks.push_back({i * step * scale, text});
  }
  return ticks;
}

}  // namespace

std::vector<Tick> count_ticks(double low, double high, int most) {
  return ticks_by(low, high, std::max(1.0, round_step(high - low, most)), 1);
}

ByteAxis byte_ticks(double low, double high, const ByteUnit& unit, int most) {
  double step = round_step((high - low) / unit.bytes, most);
  if (unit.bytes == 1) step = std::max(step, 1.0);
  return {ticks_by(low / unit.bytes, high / unit.bytes, step, unit.bytes), unit.name};
}

TimeTicks time_ticks(double low, double high, double extent_us, int most) {
  static const char* const units[] = {"us", "ms", "s"};
  int unit = 0;
  double scale = 1;
  for (; unit < 2 && extent_us >= scale * 1000; ++unit) scale *= 1000;
  return {ticks_by(low / scale, high / scale, round_step((high - low) / scale, most), scale), units[unit]};
}

}  // namespace tapedeck::viewer
