#include <tapedeck/capture/explain/svg_parts.h>

#include <tapedeck/capture/formats/json.h>

#include <algorithm>
#include <cmath>

namespace tapedeck {

std::string xml_text(const std::string& text) {
  std::string out, sound = to_utf8(text);
  for (const char* none : {"\xEF\xBF\xBE", "\xEF\xBF\xBF"})  // characters that XML does not know
    for (std::size_t at; (at = sound.find(none)) != std::string::npos;) sound.replace(at, 3, "\xEF\xBF\xBD");
  for (const char c : sound) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

SizeUnit unit_for(std::int64_t most) {
  constexpr SizeUnit units[] = {{"GiB", 1024.0 * 1024 * 1024}, {"MiB", 1024.0 * 1024}, {"KiB", 1024.0}};
  for (const SizeUnit& u : units)
    if (static_cast<double>(most) >= 2 * u.bytes) return u;
  return {"bytes", 1};
}

double tick_step(double most, int wanted) {
  const double rough = std::max(most / wanted, 1e-9), power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

}  // namespace tapedeck
