#include <tapedeck/viewer/words/colours.h>

#include <algorithm>
#include <cstdio>

namespace tapedeck::viewer {

namespace {

// In the order of RoleClass.
constexpr const char* kRoleNames[kRoleClassCount] = {"parameter/state", "input",    "constant",  "output",   "saved",
                                                     "recomputed",      "gradient", "temporary", "workspace"};

// Role colours of similar hue differ in lightness, so that the tables also work in grey.
constexpr Colours kDark = {
    .window = {24, 27, 33},
    .canvas = {17, 20, 25},
    .plot = {11, 13, 17},
    .panel = {31, 35, 43},
    .button = {42, 47, 58},
    .alternate = {23, 26, 32},
    .grid = {255, 255, 255, 20},
    .frame = {70, 77, 90},
    .edge = {42, 47, 58},
    .separator = {18, 21, 26},
    .text = {226, 230, 237},
    .faint = {146, 155, 170},
    .placeholder = {110, 118, 132},
    .disabled = {104, 110, 122},
    .link = {125, 184, 234},
    .highlight = {45, 92, 138},
    .highlighted_text = {255, 255, 255},
    .peak = {255, 255, 255},
    .budget = {255, 92, 92},
    .hover = {255, 221, 64},
    .select = {255, 255, 255},
    .outline = {0, 0, 0},
    .word_op = {240, 198, 116},
    .word_type = {130, 200, 172},
    .word_number = {206, 160, 222},
    .word_string = {214, 160, 120},
    .added_ground = {14, 52, 32},
    .removed_ground = {72, 24, 28},
    .moved_ground = {24, 38, 66},
    .measured = {150, 255, 60},
    .problem = {255, 92, 92},
    .problem_ground = {74, 20, 24},
    .phases = {{62, 92, 146}, {32, 112, 92}, {128, 98, 50}, {150, 78, 126}},
    .roles = {{38, 98, 168},
              {96, 190, 240},
              {206, 210, 216},
              {245, 232, 92},
              {232, 152, 20},
              {226, 122, 190},
              {10, 150, 118},
              {120, 130, 150},
              {68, 74, 88}},
    .groups = {{66, 102, 133},
               {173, 157, 125},
               {138, 230, 211},
               {230, 138, 187},
               {214, 207, 107},
               {95, 66, 173},
               {80, 112, 43},
               {173, 110, 87},
               {115, 191, 230},
               {193, 107, 214},
               {54, 194, 54},
               {64, 86, 230}},
    .others = {120, 130, 150},
    .outside = {68, 74, 88},
};

constexpr Colours kLight = {
    .window = {238, 240, 243},
    .canvas = {250, 251, 252},
    .plot = {255, 255, 255},
    .panel = {228, 231, 236},
    .button = {226, 230, 235},
    .alternate = {243, 245, 248},
    .grid = {0, 0, 0, 26},
    .frame = {150, 157, 168},
    .edge = {202, 207, 214},
    .separator = {214, 218, 224},
    .text = {26, 30, 36},
    .faint = {88, 96, 108},
    .placeholder = {124, 131, 142},
    .disabled = {150, 156, 165},
    .link = {14, 92, 168},
    .highlight = {44, 110, 176},
    .highlighted_text = {255, 255, 255},
    .peak = {20, 22, 26},
    .budget = {204, 24, 36},
    .hover = {0, 60, 230},
    .select = {0, 0, 0},
    .outline = {255, 255, 255},
    .word_op = {132, 80, 0},
    .word_type = {0, 104, 86},
    .word_number = {128, 40, 140},
    .word_string = {124, 66, 30},
    .added_ground = {212, 242, 220},
    .removed_ground = {255, 222, 222},
    .moved_ground = {222, 232, 250},
    .measured = {124, 0, 190},
    .problem = {186, 18, 30},
    .problem_ground = {255, 226, 226},
    .phases = {{178, 202, 236}, {168, 218, 200}, {234, 210, 164}, {238, 188, 222}},
    .roles = {{38, 98, 168},
              {96, 190, 240},
              {190, 196, 202},
              {228, 202, 70},
              {232, 152, 20},
              {226, 122, 190},
              {10, 150, 118},
              {120, 130, 150},
              {68, 74, 88}},
    .groups = {{44, 91, 219},
               {219, 201, 127},
               {31, 97, 66},
               {178, 36, 112},
               {240, 176, 48},
               {171, 139, 199},
               {86, 117, 23},
               {97, 31, 31},
               {148, 219, 255},
               {81, 19, 97},
               {32, 158, 65},
               {36, 55, 178}},
    .others = {120, 130, 150},
    .outside = {190, 196, 202},
};

constexpr Colours kHighContrast = {
    .window = {0, 0, 0},
    .canvas = {0, 0, 0},
    .plot = {0, 0, 0},
    .panel = {0, 0, 0},
    .button = {32, 32, 32},
    .alternate = {24, 24, 24},
    .grid = {255, 255, 255, 70},
    .frame = {255, 255, 255},
    .edge = {255, 255, 255},
    .separator = {150, 150, 150},
    .text = {255, 255, 255},
    .faint = {222, 222, 222},
    .placeholder = {190, 190, 190},
    .disabled = {150, 150, 150},
    .link = {130, 205, 255},
    .highlight = {255, 255, 0},
    .highlighted_text = {0, 0, 0},
    .peak = {255, 255, 255},
    .budget = {255, 96, 96},
    .hover = {255, 255, 0},
    .select = {255, 255, 255},
    .outline = {0, 0, 0},
    .word_op = {255, 220, 120},
    .word_type = {120, 255, 210},
    .word_number = {255, 176, 255},
    .word_string = {255, 200, 150},
    .added_ground = {0, 56, 0},
    .removed_ground = {84, 0, 0},
    .moved_ground = {0, 20, 84},
    .measured = {90, 255, 60},
    .problem = {255, 110, 110},
    .problem_ground = {60, 0, 0},
    .phases = {{0, 66, 190}, {0, 104, 60}, {128, 76, 0}, {146, 0, 112}},
    .roles = {{70, 118, 255},
              {110, 220, 255},
              {255, 255, 255},
              {255, 255, 0},
              {255, 150, 0},
              {255, 112, 224},
              {0, 200, 120},
              {150, 160, 180},
              {125, 125, 140}},
    .groups = {{82, 151, 255},
               {158, 82, 32},
               {154, 219, 189},
               {178, 57, 89},
               {240, 233, 139},
               {133, 51, 255},
               {164, 240, 77},
               {240, 125, 48},
               {178, 255, 250},
               {230, 178, 255},
               {104, 178, 104},
               {90, 119, 199}},
    .others = {150, 160, 180},
    .outside = {125, 125, 140},
};

struct Row {
  const char* name;
  const Colours& colours;
};

// In the order of Theme.
constexpr Row kThemes[kThemeCount] = {{"dark", kDark}, {"light", kLight}, {"high-contrast", kHighContrast}};
Theme in_use = Theme::dark;

constexpr Colour kDarkText{16, 18, 22}, kLightText{240, 243, 248};

std::uint8_t clamped(double x) { return static_cast<std::uint8_t>(std::clamp(x, 0.0, 255.0)); }

}  // namespace

namespace detail {
constinit Colours colours_in_use = kDark;
}

const char* role_class_name(RoleClass role) { return kRoleNames[static_cast<int>(role)]; }

const char* theme_name(Theme theme) { return kThemes[static_cast<int>(theme)].name; }

bool find_theme(std::string_view name, Theme* theme) {
  for (int i = 0; i < kThemeCount; ++i) {
    if (kThemes[i].name != name) continue;
    *theme = static_cast<Theme>(i);
    return true;
  }
  return false;
}

std::string theme_list() {
  std::string list;
  for (const Row& row : kThemes) list += (list.empty() ? "" : ", ") + std::string(row.name);
  return list;
}

const Colours& colours_of(Theme theme) { return kThemes[static_cast<int>(theme)].colours; }

void use_theme(Theme theme) {
  in_use = theme;
  detail::colours_in_use = colours_of(theme);
}

Theme theme_in_use() { return in_use; }

Colour role_class_colour(RoleClass role) { return detail::colours_in_use.roles[static_cast<int>(role)]; }
Colour group_colour(int group) { return detail::colours_in_use.groups[std::clamp(group, 0, kGroupColourCount - 1)]; }
Colour others_colour() { return detail::colours_in_use.others; }
Colour outside_colour() { return detail::colours_in_use.outside; }
Colour phase_colour(int phase) { return detail::colours_in_use.phases[std::clamp(phase, 0, 3)]; }

Colour shaded(Colour c, double factor) { return {clamped(c.r * factor), clamped(c.g * factor), clamped(c.b * factor), c.a}; }

Colour mixed(Colour under, Colour over, double share) {
  const auto mix = [&](int u, int o) { return clamped(u + (o - u) * share + 0.5); };
  return {mix(under.r, over.r), mix(under.g, over.g), mix(under.b, over.b), 255};
}

Colour text_on(Colour ground) { return 0.299 * ground.r + 0.587 * ground.g + 0.114 * ground.b > 100 ? kDarkText : kLightText; }

std::string html_colour(Colour c) {
  char text[8];
  std::snprintf(text, sizeof text, "#%02x%02x%02x", c.r, c.g, c.b);
  return text;
}

}  // namespace tapedeck::viewer
