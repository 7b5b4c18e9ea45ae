// The table of all colours. A value has the colour of its role in the plan. A person with red-green blindness can tell the nine
// role colours apart (tests/viewer/colours_test.cpp measures it), and recomputed values are hatched as well.
#pragma once

#include <cstdint>

namespace tapedeck::viewer {

// The roles of values in a plan.
enum class RoleClass : std::uint8_t { state, input, constant, output, saved, recomputed, gradient, temporary, workspace };
inline constexpr int kRoleClassCount = 9;

const char* role_class_name(RoleClass role);  // "parameter/state", "input", ...

// A colour; 255 is full intensity, or opaque.
struct Colour {
  std::uint8_t r = 0, g = 0, b = 0, a = 255;
  bool operator==(const Colour& o) const { return r == o.r && g == o.g && b == o.b && a == o.a; }
};

Colour role_class_colour(RoleClass role);
Colour phase_colour(int phase);  // 0 forward, 1 backward, 2 update, 3 clones

namespace colours {
inline constexpr Colour kWindow{24, 27, 33}, kCanvas{17, 20, 25}, kPlot{11, 13, 17}, kGrid{255, 255, 255, 18},
    kFrame{70, 77, 90};
inline constexpr Colour kText{226, 230, 237}, kFaint{146, 155, 170}, kPanel{31, 35, 43}, kButton{42, 47, 58},
    kAccent{86, 156, 214};
inline constexpr Colour kPeak{255, 255, 255}, kBudget{255, 92, 92}, kHover{255, 221, 64}, kSelect{255, 255, 255};
}  // namespace colours

// The colour with its brightness multiplied by `factor`, for outlines and dimming.
Colour shaded(Colour c, double factor);
// A mixture: the share `share` of `over`, the rest of `under`.
Colour mixed(Colour under, Colour over, double share);

}  // namespace tapedeck::viewer
