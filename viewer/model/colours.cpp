#include <tapedeck/viewer/model/colours.h>

#include <algorithm>

namespace tapedeck::viewer {

namespace {

struct Row {
  const char* name;
  Colour colour;
};

// In the order of RoleClass. Colours of similar hue differ in lightness, so that the table also works in grey.
constexpr Row kRows[kRoleClassCount] = {
    {"parameter/state", {38, 98, 168}}, {"input", {96, 190, 240}},      {"constant", {206, 210, 216}},
    {"output", {245, 232, 92}},         {"saved", {232, 152, 20}},      {"recomputed", {226, 122, 190}},
    {"gradient", {10, 150, 118}},       {"temporary", {120, 130, 150}}, {"workspace", {68, 74, 88}},
};

std::uint8_t clamped(double x) { return static_cast<std::uint8_t>(std::clamp(x, 0.0, 255.0)); }

}  // namespace

const char* role_class_name(RoleClass role) { return kRows[static_cast<int>(role)].name; }
Colour role_class_colour(RoleClass role) { return kRows[static_cast<int>(role)].colour; }

Colour phase_colour(int phase) {
  static constexpr Colour table[] = {{62, 92, 146}, {32, 112, 92}, {128, 98, 50}, {150, 78, 126}};
  return table[std::clamp(phase, 0, 3)];
}

Colour shaded(Colour c, double factor) { return {clamped(c.r * factor), clamped(c.g * factor), clamped(c.b * factor), c.a}; }

Colour mixed(Colour under, Colour over, double share) {
  const auto mix = [&](int u, int o) { return clamped(u + (o - u) * share + 0.5); };
  return {mix(under.r, over.r), mix(under.g, over.g), mix(under.b, over.b), 255};
}

}  // namespace tapedeck::viewer
