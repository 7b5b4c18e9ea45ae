// Sets up a Dear ImGui context without a windowing system: fonts of the scale of the screen, the mapping of keys for old and
// new versions of ImGui, and the queue of input.
//
//   queue: move, press, release        frame 1 takes: move, press        frame 2 takes: release
#include <tapedeck/viewer/drawing/imgui_host.h>

#include <tapedeck/viewer/drawing/shared_fonts.h>

#include <algorithm>
#include <cfloat>
#include <iterator>
#include <string>
#include <utility>

namespace tapedeck::viewer {

namespace {

#if IMGUI_VERSION_NUM >= 18700
ImGuiKey to_imgui_key(Key key) {
  static constexpr ImGuiKey named[] = {ImGuiKey_None,      ImGuiKey_Tab,       ImGuiKey_LeftArrow, ImGuiKey_RightArrow,
                                       ImGuiKey_UpArrow,   ImGuiKey_DownArrow, ImGuiKey_PageUp,    ImGuiKey_PageDown,
                                       ImGuiKey_Home,      ImGuiKey_End,       ImGuiKey_Insert,    ImGuiKey_Delete,
                                       ImGuiKey_Backspace, ImGuiKey_Space,     ImGuiKey_Enter,     ImGuiKey_Escape};
  if (key < Key::a) return named[static_cast<int>(key)];
  if (key <= Key::z) return static_cast<ImGuiKey>(ImGuiKey_A + static_cast<int>(key) - static_cast<int>(Key::a));
  return key == Key::plus ? ImGuiKey_Equal : ImGuiKey_Minus;
}
#else
int to_imgui_key(Key key) { return static_cast<int>(key); }  // this program chooses the indices into KeysDown

void map_keys(ImGuiIO& io) {
  static constexpr std::pair<int, Key> pairs[] = {{ImGuiKey_Tab, Key::tab},
                                                  {ImGuiKey_LeftArrow, Key::left},
                                                  {ImGuiKey_RightArrow, Key::right},
                                                  {ImGuiKey_UpArrow, Key::up},
                                                  {ImGuiKey_DownArrow, Key::down},
                                                  {ImGuiKey_PageUp, Key::page_up},
                                                  {ImGuiKey_PageDown, Key::page_down},
                                                  {ImGuiKey_Home, Key::home},
                                                  {ImGuiKey_End, Key::end},
                                                  {ImGuiKey_Insert, Key::insert},
                                                  {ImGuiKey_Delete, Key::erase},
                                                  {ImGuiKey_Backspace, Key::backspace},
                                                  {ImGuiKey_Space, Key::space},
                                                  {ImGuiKey_Enter, Key::enter},
                                                  {ImGuiKey_Escape, Key::escape},
                                                  {ImGuiKey_A, Key::a},
                                                  {ImGuiKey_C, Key::c},
                                                  {ImGuiKey_V, Key::v},
                                                  {ImGuiKey_X, Key::x},
                                                  {ImGuiKey_Y, Key::y},
                                                  {ImGuiKey_Z, Key::z}};
  for (const auto& [imgui, ours] : pairs) io.KeyMap[imgui] = static_cast<int>(ours);
}
#endif

void style() {
  ImGuiStyle& s = ImGui::GetStyle();
  s.WindowRounding = s.FrameRounding = s.PopupRounding = 0;
  s.WindowBorderSize = 1;
  s.WindowPadding = ImVec2(10, 8);
  s.AntiAliasedLinesUseTex = false;  // smooth lines would need a filtered texture, but the rasteriser reads the nearest texel
}

void style_colours() {
  ImGuiStyle& s = ImGui::GetStyle();
  theme_in_use() == Theme::light ? ImGui::StyleColorsLight(&s) : ImGui::StyleColorsDark(&s);
  const auto vec = [](Colour c, float alpha) { return ImVec4(c.r / 255.0f, c.g / 255.0f, c.b / 255.0f, alpha); };
  s.Colors[ImGuiCol_PopupBg] = vec(colours::kPanel, 0.97f);
  s.Colors[ImGuiCol_Border] = vec(colours::kFrame, 1);
  s.Colors[ImGuiCol_Text] = vec(colours::kText, 1);
  s.Colors[ImGuiCol_TextDisabled] = vec(colours::kFaint, 1);
}

}  // namespace

ImFont* font(TextSize size) {
  const auto& fonts = ImGui::GetIO().Fonts->Fonts;
  return fonts[std::min(static_cast<int>(size), fonts.Size - 1)];
}

ImGuiHost::ImGuiHost(double scale)
    : scale_(std::max(scale, 0.25)), fonts_(shared_fonts(scale_)), context_(ImGui::CreateContext(fonts_.get())) {
  make_current();
  ImGuiIO& io = ImGui::GetIO();
  io.IniFilename = nullptr;
  io.LogFilename = nullptr;
  io.BackendFlags |= ImGuiBackendFlags_RendererHasVtxOffset;
  io.ClipboardUserData = this;
  io.GetClipboardTextFn = [](void* self) {
    auto* host = static_cast<ImGuiHost*>(self);
    host->clipboard_text_ = host->clipboard_.get ? host->clipboard_.get() : std::string();
    return host->clipboard_text_.c_str();
  };
  io.SetClipboardTextFn = [](void* self, const char* text) {
    auto* host = static_cast<ImGuiHost*>(self);
    if (host->clipboard_.set) host->clipboard_.set(text);
  };
#if IMGUI_VERSION_NUM < 18700
  map_keys(io);
#endif
  style();
  style_colours();
  take_fonts();
}

ImGuiHost::~ImGuiHost() { ImGui::DestroyContext(context_); }

void ImGuiHost::make_current() const { ImGui::SetCurrentContext(context_); }

void ImGuiHost::set_scale(double scale) {
  if (scale == scale_ || !(scale > 0)) return;
  scale_ = scale;
  make_current();
  take_fonts();
}

bool ImGuiHost::fonts_changed() { return std::exchange(fonts_changed_, false); }

void ImGuiHost::use_own_fonts() {
  if (std::exchange(owns_fonts_, true)) return;
  make_current();
  take_fonts();
}

void ImGuiHost::take_fonts() {
  ImGuiIO& io = ImGui::GetIO();
  fonts_ = owns_fonts_ ? own_fonts(scale_) : shared_fonts(scale_);
  io.Fonts = fonts_.get();
  io.FontDefault = font(TextSize::body);
  io.FontGlobalScale = static_cast<float>(1 / scale_);
  fonts_changed_ = true;
  raster_.forget();
}

void ImGuiHost::queue(const InputEvent& event) {
  // A move replaces a move that is still in the queue.
  if (!queue_.empty() && event.kind == InputEvent::Kind::move && queue_.back().kind == event.kind)
    queue_.back() = event;
  else
    queue_.push_back(event);
}

bool ImGuiHost::wants_text() const {
  make_current();
  return ImGui::GetIO().WantTextInput;
}

void ImGuiHost::take_input() {
  ImGuiIO& io = ImGui::GetIO();
  using Kind = InputEvent::Kind;
  bool clicked = false, wheeled = false, typed = false;
  while (!queue_.empty()) {
    const InputEvent& e = queue_.front();
    // An event waits for the next frame if ImGui would confuse it with an event that this frame has taken.
    if ((e.kind == Kind::move || e.kind == Kind::leave) && (clicked || wheeled || typed)) break;
    if (e.kind == Kind::button && (clicked || wheeled || typed)) break;
    if (e.kind == Kind::wheel && (clicked || typed)) break;
    if (e.kind == Kind::key && (typed || clicked || wheeled)) break;
    io.KeyCtrl = e.ctrl;
    io.KeyShift = e.shift;
    io.KeyAlt = e.alt;
#if IMGUI_VERSION_NUM >= 18700
    io.AddKeyEvent(ImGuiMod_Ctrl, e.ctrl);
    io.AddKeyEvent(ImGuiMod_Shift, e.shift);
    io.AddKeyEvent(ImGuiMod_Alt, e.alt);
#endif
    switch (e.kind) {
      case Kind::move:
        io.MousePos = ImVec2(e.x, e.y);
        break;
      case Kind::leave:
        io.MousePos = ImVec2(-FLT_MAX, -FLT_MAX);
        break;
      case Kind::button:
        io.MouseDown[std::clamp(e.button, 0, 2)] = e.down;
        clicked = true;
        break;
      case Kind::wheel:
        io.MouseWheelH += e.x;
        io.MouseWheel += e.y;
        wheeled = true;
        break;
      case Kind::key:
#if IMGUI_VERSION_NUM >= 18700
        io.AddKeyEvent(to_imgui_key(e.key), e.down);
#else
        io.KeysDown[to_imgui_key(e.key)] = e.down;
#endif
        typed = true;
        break;
      case Kind::text:
        io.AddInputCharacter(e.character);
        break;
      case Kind::focus_lost:
        io.KeyCtrl = io.KeyShift = io.KeyAlt = false;
#if IMGUI_VERSION_NUM >= 18700
        io.AddFocusEvent(false);
#else
        std::fill(std::begin(io.KeysDown), std::end(io.KeysDown), false);
#endif
        break;
    }
    queue_.pop_front();
  }
}

const ImDrawData& ImGuiHost::frame(Picture& picture, float width, float height, double seconds) {
  make_current();
  ImGuiIO& io = ImGui::GetIO();
  io.DisplaySize = ImVec2(std::max(width, 1.0f), std::max(height, 1.0f));
  io.DisplayFramebufferScale = ImVec2(static_cast<float>(scale_), static_cast<float>(scale_));
  io.DeltaTime = static_cast<float>(std::clamp(seconds, 0.0001, 0.25));
  if (theme_ != theme_in_use()) style_colours();
  theme_ = theme_in_use();
  take_input();
  ImGui::NewFrame();
  ImGui::SetNextWindowPos(ImVec2(0, 0));
  ImGui::SetNextWindowSize(io.DisplaySize);
  ImGui::PushStyleVar(ImGuiStyleVar_WindowPadding, ImVec2(0, 0));
  ImGui::PushStyleVar(ImGuiStyleVar_WindowBorderSize, 0.0f);
  ImGui::Begin("picture", nullptr,
               ImGuiWindowFlags_NoDecoration | ImGuiWindowFlags_NoMove | ImGuiWindowFlags_NoSavedSettings |
                   ImGuiWindowFlags_NoBackground | ImGuiWindowFlags_NoNav | ImGuiWindowFlags_NoBringToFrontOnFocus);
  ImGui::PopStyleVar(2);
  picture.draw(io.DisplaySize.x, io.DisplaySize.y);
  ImGui::End();
  ImGui::Render();
  return *ImGui::GetDrawData();
}

const std::vector<PixelBox>& ImGuiHost::rasterize_to(const Pixels& target) {
  make_current();
  unsigned char* data = nullptr;
  AlphaTexture texture;
  ImGui::GetIO().Fonts->GetTexDataAsAlpha8(&data, &texture.width, &texture.height);
  texture.data = data;
  static const ImDrawData nothing;
  const ImDrawData* drawn = ImGui::GetDrawData();
  return raster_.draw(drawn != nullptr ? *drawn : nothing, texture, to_imgui(colours::kCanvas), target);
}

}  // namespace tapedeck::viewer
