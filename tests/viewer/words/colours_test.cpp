// Tests the tables of colours: contrast, sight of the colour-blind, and that no other source has a colour.
#include <tapedeck/viewer/words/colours.h>

#include <tapedeck/capture/explain/memory_map.h>

#include <gtest/gtest.h>
#include <QtCore/QRegularExpression>

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tapedeck::viewer {
namespace {

std::string named(int theme) { return theme_name(static_cast<Theme>(theme)); }
const Colours& table(int theme) { return colours_of(static_cast<Theme>(theme)); }

// A linear-light colour as a person without green cones (deuteranopia) or without red cones (protanopia) sees it, by the
// matrices of Vienot 1999.
std::array<double, 3> seen_colour(Colour c, int kind) {
  const auto linear = [](int x) { return std::pow(x / 255.0, 2.2); };
  const double r = linear(c.r), g = linear(c.g), b = linear(c.b);
  std::array<double, 3> out{r, g, b};
  if (kind == 1) out = {0.29275 * r + 0.70725 * g, 0.29275 * r + 0.70725 * g, -0.02234 * r + 0.02234 * g + b};
  if (kind == 2) out = {0.11238 * r + 0.88762 * g, 0.11238 * r + 0.88762 * g, 0.00401 * r - 0.00401 * g + b};
  for (double& x : out) x = std::pow(std::max(x, 0.0), 1 / 2.2) * 255;
  return out;
}

// The tool's SVG pictures and the viewer use the same words and colours.
TEST(Colours, RolesLookAsInPicturesOfTheTool) {
  ASSERT_EQ(kRoleClassCount, kMemoryRoleCount);
  for (int i = 0; i < kRoleClassCount; ++i) {
    const Colour c = role_class_colour(static_cast<RoleClass>(i));
    EXPECT_EQ(memory_role_colour(static_cast<MemoryRole>(i)),
              static_cast<std::uint32_t>(c.r) << 16 | static_cast<std::uint32_t>(c.g) << 8 | c.b);
    EXPECT_STREQ(memory_role_name(static_cast<MemoryRole>(i)), role_class_name(static_cast<RoleClass>(i)));
  }
}

TEST(Colours, RolesStayApartForTheColourBlindInEveryTheme) {
  for (int theme = 0; theme < kThemeCount; ++theme)
    for (int kind = 0; kind < 3; ++kind)
      for (int i = 0; i < kRoleClassCount; ++i)
        for (int j = 0; j < i; ++j) {
          const auto a = seen_colour(table(theme).roles[i], kind), b = seen_colour(table(theme).roles[j], kind);
          const double distance = std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]);
          EXPECT_GT(distance, 30) << named(theme) << ": " << role_class_name(static_cast<RoleClass>(i)) << " and "
                                  << role_class_name(static_cast<RoleClass>(j)) << ", sight " << kind;
        }
}

TEST(Colours, GroupsStayApartForTheColourBlindInEveryTheme) {
  for (int theme = 0; theme < kThemeCount; ++theme) {
    std::vector<Colour> all(std::begin(table(theme).groups), std::end(table(theme).groups));
    all.push_back(table(theme).others);
    all.push_back(table(theme).outside);
    for (int kind = 0; kind < 3; ++kind)
      for (std::size_t i = 0; i < all.size(); ++i)
        for (std::size_t j = 0; j < i; ++j) {
          const auto a = seen_colour(all[i], kind), b = seen_colour(all[j], kind);
          EXPECT_GT(std::hypot(a[0] - b[0], a[1] - b[1], a[2] - b[2]), 45)
              << named(theme) << ": " << html_colour(all[i]) << " and " << html_colour(all[j]) << ", sight " << kind;
        }
  }
}

// The contrast of WCAG 2: 1 for equal colours, 21 for black and white.
double contrast(Colour a, Colour b) {
  const auto linear = [](int x) { return x <= 10 ? x / 255.0 / 12.92 : std::pow((x / 255.0 + 0.055) / 1.055, 2.4); };
  const auto light = [&](Colour c) { return 0.2126 * linear(c.r) + 0.7152 * linear(c.g) + 0.0722 * linear(c.b) + 0.05; };
  return std::max(light(a), light(b)) / std::min(light(a), light(b));
}

TEST(Colours, TextCanBeReadInEveryTheme) {
  for (int theme = 0; theme < kThemeCount; ++theme) {
    const Colours& c = table(theme);
    const bool high = static_cast<Theme>(theme) == Theme::high_contrast;
    for (Colour ground : {c.window, c.canvas, c.plot, c.panel, c.button, c.alternate}) {
      EXPECT_GE(contrast(c.text, ground), high ? 15 : 10) << named(theme);
      EXPECT_GE(contrast(c.faint, ground), high ? 10 : 4.5) << named(theme);
    }
    for (Colour ground : {c.window, c.canvas, c.plot}) {
      EXPECT_GE(contrast(c.problem, ground), 4.5) << named(theme);
      EXPECT_GE(contrast(c.link, ground), 4.5) << named(theme);
      EXPECT_GE(contrast(c.budget, ground), 4.5) << named(theme);
    }
    EXPECT_GE(contrast(c.highlighted_text, c.highlight), 4.5) << named(theme);
    EXPECT_GE(contrast(c.text, c.problem_ground), 7) << named(theme);
    EXPECT_GE(contrast(c.select, c.outline), 10) << named(theme);
    EXPECT_GE(contrast(c.hover, c.outline), 4.5) << named(theme);
    for (Colour phase : c.phases) EXPECT_GE(contrast(c.text, phase), 4.5) << named(theme);
    for (Colour role : c.roles) EXPECT_GE(contrast(text_on(role), role), 4) << named(theme) << html_colour(role);
    for (Colour group : c.groups) EXPECT_GE(contrast(text_on(group), group), 4) << named(theme) << html_colour(group);
    for (Colour group : c.groups) EXPECT_GE(contrast(group, c.plot), high ? 3.5 : 1.4) << named(theme) << html_colour(group);
    for (Colour role : c.roles) EXPECT_GE(contrast(role, c.plot), high ? 3.5 : 1.4) << named(theme) << html_colour(role);
  }
}

TEST(Colours, ThemesAreFoundByNameAndTheNamesFollowTheThemeInUse) {
  for (int i = 0; i < kThemeCount; ++i) {
    Theme theme{};
    ASSERT_TRUE(find_theme(named(i), &theme));
    EXPECT_EQ(static_cast<int>(theme), i);
    use_theme(theme);
    EXPECT_EQ(theme_in_use(), theme);
    EXPECT_EQ(colours::kText, table(i).text);
    EXPECT_EQ(role_class_colour(RoleClass::saved), table(i).roles[static_cast<int>(RoleClass::saved)]);
    EXPECT_EQ(phase_colour(1), table(i).phases[1]);
  }
  use_theme(Theme::dark);
  Theme theme{};
  EXPECT_FALSE(find_theme("pink", &theme));
  EXPECT_EQ(html_colour({38, 98, 168}), "#2662a8");
}

#ifdef TAPEDECK_SOURCE_DIR
TEST(Colours, NoOtherSourceOfTheViewerHasAColour) {
  const QRegularExpression colour(QStringLiteral(
      R"(#[0-9a-fA-F]{6}\b|\b(IM_COL32|QColor|Colour|qRgba?)[({] ?[0-9]|Qt::(black|white|red|green|blue|gray)\b)"));
  int read = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(TAPEDECK_SOURCE_DIR "/viewer")) {
    const std::string name = entry.path().filename().string();
    if (name == "colours.cpp" || name == "colours.h" || (!name.ends_with(".cpp") && !name.ends_with(".h"))) continue;
    std::ifstream in(entry.path());
    ++read;
    for (std::string line; std::getline(in, line);)
      EXPECT_FALSE(colour.match(QString::fromStdString(line)).hasMatch()) << name << ": " << line;
  }
  EXPECT_GT(read, 30);
}
#endif

}  // namespace
}  // namespace tapedeck::viewer
