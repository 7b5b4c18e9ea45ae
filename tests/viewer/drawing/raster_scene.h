// A small picture for tests of the rasteriser, made of triangles by hand.
#pragma once

#include <tapedeck/viewer/drawing/raster.h>

#include <imgui.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tapedeck::viewer {

inline constexpr int kWidth = 60, kHeight = 44;
inline constexpr std::uint32_t kBlack = 0xff000000u;

// Draw data made by hand: a list of triangles under one clip rectangle.
class Scene {
 public:
  explicit Scene(ImVec4 clip = ImVec4(0, 0, kWidth, kHeight)) : list_(std::make_unique<ImDrawList>(nullptr)) {
    ImDrawCmd cmd;
    cmd.ClipRect = clip;
    list_->CmdBuffer.push_back(cmd);
  }
  void vertex(float x, float y, ImU32 colour, float u = 0, float v = 0) {
    ImDrawVert vertex;
    vertex.pos = ImVec2(x, y);
    vertex.uv = ImVec2(u, v);
    vertex.col = colour;
    list_->IdxBuffer.push_back(static_cast<ImDrawIdx>(list_->VtxBuffer.Size));
    list_->VtxBuffer.push_back(vertex);
    list_->CmdBuffer[0].ElemCount++;
  }
  void index(int i) {
    list_->IdxBuffer.push_back(static_cast<ImDrawIdx>(i));
    list_->CmdBuffer[0].ElemCount++;
  }
  ImDrawCmd& command() { return list_->CmdBuffer[0]; }
  ImDrawList& list() { return *list_; }
  std::vector<std::uint32_t> draw(float scale = 1, AlphaTexture texture = {}) {
    std::vector<std::uint32_t> pixels(static_cast<std::size_t>(kWidth) * kHeight, kBlack);
    rasterize(data(scale), texture, {pixels.data(), kWidth, kHeight});
    return pixels;
  }
  // Valid as long as the scene.
  ImDrawData data(float scale = 1) {
    ImDrawData data;
    data.Valid = true;
    data.CmdLists = &lists_[0];
    data.CmdListsCount = 1;
    data.DisplaySize = ImVec2(kWidth, kHeight);
    data.FramebufferScale = ImVec2(scale, scale);
    return data;
  }

 private:
  std::unique_ptr<ImDrawList> list_;
  std::vector<ImDrawList*> lists_{list_.get()};
};

}  // namespace tapedeck::viewer
