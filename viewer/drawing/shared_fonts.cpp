#include <tapedeck/viewer/drawing/shared_fonts.h>

#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <utility>

namespace tapedeck::viewer {

namespace {

// The characters of the fonts: Latin letters, dashes, ellipsis, bullet, arrows, less-or-equal.
const ImWchar kGlyphs[] = {0x20, 0xff, 0x2010, 0x2027, 0x2190, 0x2193, 0x2264, 0x2265, 0};

// The bytes of a font; empty if this machine does not have it. All atlases share them, so that a font is read once.
std::string& font_bytes(const std::string& name) {
  static std::map<std::string, std::string> known;
  const auto [entry, is_new] = known.try_emplace(name);
  if (!is_new) return entry->second;
  for (const char* folder : {"/usr/share/fonts/truetype/dejavu/", "/usr/share/fonts/dejavu/", "/usr/share/fonts/TTF/",
                             "/usr/share/fonts/dejavu-sans-fonts/", "/usr/local/share/fonts/"}) {
    std::ifstream file(folder + name, std::ios::binary);
    entry->second.assign(std::istreambuf_iterator<char>(file), {});
    if (!entry->second.empty()) break;
  }
  return entry->second;
}

void add_font(std::string* bytes, float pixels, ImFontAtlas* fonts) {
  ImFontConfig config;
  config.OversampleH = config.OversampleV = 1;
  config.PixelSnapH = true;
  config.FontDataOwnedByAtlas = false;
  const int length = static_cast<int>(bytes->size());
  if (!bytes->empty() && fonts->AddFontFromMemoryTTF(bytes->data(), length, pixels, &config, kGlyphs) != nullptr) return;
  config.FontDataOwnedByAtlas = true;
  config.SizePixels = pixels;
  fonts->AddFontDefault(&config);
}

}  // namespace

// Letters are rendered at their size on the screen, at whole pixels, so that they are sharp at every scale.
std::shared_ptr<ImFontAtlas> own_fonts(double scale) {
  auto fonts = std::make_shared<ImFontAtlas>();
  std::string *sans = &font_bytes("DejaVuSans.ttf"), *bold = &font_bytes("DejaVuSans-Bold.ttf");
  for (const auto& [size, bytes] : {std::pair(11.0, sans), std::pair(13.0, sans), std::pair(15.0, bold->empty() ? sans : bold)})
    add_font(bytes, static_cast<float>(static_cast<int>(size * scale + 0.5)), fonts.get());
  fonts->Build();
  // ImGui drops text whose texture id is null. A renderer replaces this id with its own.
  fonts->SetTexID(reinterpret_cast<ImTextureID>(static_cast<std::intptr_t>(1)));
  return fonts;
}

std::shared_ptr<ImFontAtlas> shared_fonts(double scale) {
  static std::map<double, std::weak_ptr<ImFontAtlas>> known;
  static std::shared_ptr<ImFontAtlas> last;
  std::erase_if(known, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<ImFontAtlas>& entry = known[scale];
  std::shared_ptr<ImFontAtlas> fonts = entry.lock();
  if (!fonts) entry = fonts = own_fonts(scale);
  last = fonts;
  return fonts;
}

}  // namespace tapedeck::viewer
