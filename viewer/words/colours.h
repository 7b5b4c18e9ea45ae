// The tables of all colours, one for each theme. The windows of Qt and the pictures of Dear ImGui read the table in use, and no
// other file of the viewer has a colour. A value has the colour of its role in the plan, or of its group. A person with
// red-green blindness can tell the nine role colours apart in every theme, and the colours of the groups, too
// (tests/viewer/colours_test.cpp measures it); recomputed values are hatched as well.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

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

enum class Theme : std::uint8_t { dark, light, high_contrast };
inline constexpr int kThemeCount = 3;

const char* theme_name(Theme theme);                   // "dark", "light", "high-contrast"
bool find_theme(std::string_view name, Theme* theme);  // false if no theme has this name
std::string theme_list();                              // "dark, light, high-contrast": for people

inline constexpr int kGroupColourCount = 12;

// All colours of a theme.
struct Colours {
  // Grounds: the window, the ground of a picture, of a plot in it, of titles and tooltips, of buttons, of every second row.
  Colour window, canvas, plot, panel, button, alternate;
  // Lines: the grid of a plot, frames, edges of tables, the space between docks.
  Colour grid, frame, edge, separator;
  Colour text, faint, placeholder, disabled, link;
  Colour highlight, highlighted_text;  // a selected row
  // Lines in pictures: peak, budget, outlines of the hovered and the selected value, and what surrounds these outlines.
  Colour peak, budget, hover, select, outline;
  // Words of graph text, and the grounds of its changed lines.
  Colour word_op, word_type, word_number, word_string;
  Colour added_ground, removed_ground, moved_ground;
  Colour measured;                 // what a replay measured, over what a plan says
  Colour problem, problem_ground;  // text that says what is wrong, and the ground of a box with such a text
  Colour phases[4];                // forward, backward, update, clones
  Colour roles[kRoleClassCount];
  // Groups of values (value_groups.h), where these decide the colour: one colour for each group, those without a colour of
  // their own, and the values that are in no group.
  Colour groups[kGroupColourCount];
  Colour others, outside;
};

const Colours& colours_of(Theme theme);
void use_theme(Theme theme);  // puts the theme in use; only the UI thread may call it
Theme theme_in_use();

namespace detail {
extern Colours colours_in_use;
}

// The colours of the theme in use, by name. They change when use_theme() is called.
namespace colours {
inline constexpr const Colour &kWindow = detail::colours_in_use.window, &kCanvas = detail::colours_in_use.canvas,
                              &kPlot = detail::colours_in_use.plot, &kPanel = detail::colours_in_use.panel,
                              &kButton = detail::colours_in_use.button, &kAlternate = detail::colours_in_use.alternate;
inline constexpr const Colour &kGrid = detail::colours_in_use.grid, &kFrame = detail::colours_in_use.frame,
                              &kEdge = detail::colours_in_use.edge, &kSeparator = detail::colours_in_use.separator;
inline constexpr const Colour &kText = detail::colours_in_use.text, &kFaint = detail::colours_in_use.faint,
                              &kPlaceholder = detail::colours_in_use.placeholder, &kDisabled = detail::colours_in_use.disabled,
                              &kLink = detail::colours_in_use.link;
inline constexpr const Colour &kHighlight = detail::colours_in_use.highlight,
                              &kHighlightedText = detail::colours_in_use.highlighted_text;
inline constexpr const Colour &kPeak = detail::colours_in_use.peak, &kBudget = detail::colours_in_use.budget,
                              &kHover = detail::colours_in_use.hover, &kSelect = detail::colours_in_use.select,
                              &kOutline = detail::colours_in_use.outline, &kMeasured = detail::colours_in_use.measured;
inline constexpr const Colour &kProblem = detail::colours_in_use.problem,
                              &kProblemGround = detail::colours_in_use.problem_ground;
inline constexpr const Colour &kWordOp = detail::colours_in_use.word_op, &kWordType = detail::colours_in_use.word_type,
                              &kWordNumber = detail::colours_in_use.word_number,
                              &kWordString = detail::colours_in_use.word_string;
inline constexpr const Colour &kAddedGround = detail::colours_in_use.added_ground,
                              &kRemovedGround = detail::colours_in_use.removed_ground,
                              &kMovedGround = detail::colours_in_use.moved_ground;
}  // namespace colours

// Of the theme in use.
Colour role_class_colour(RoleClass role);
Colour group_colour(int group);  // of groups of values, from 0
Colour others_colour();          // of groups without a colour of their own
Colour outside_colour();         // of values that are in no group
Colour phase_colour(int phase);  // 0 forward, 1 backward, 2 update, 3 clones

// The colour with its brightness multiplied by `factor`, for outlines and dimming.
Colour shaded(Colour c, double factor);
// A mixture: the share `share` of `over`, the rest of `under`.
Colour mixed(Colour under, Colour over, double share);
// The colour of text on a ground of this colour: nearly black or nearly white.
Colour text_on(Colour ground);
std::string html_colour(Colour c);  // "#2662a8", without the opacity

}  // namespace tapedeck::viewer
