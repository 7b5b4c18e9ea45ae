// The model of the walks through the window.
#pragma once

namespace tapedeck::viewer {

// A sanitizer makes planning ten times slower, so it gets a model of fewer nodes.
#ifdef TAPEDECK_SANITIZED
inline constexpr const char* kWalkedModel = "cnn";
#else
inline constexpr const char* kWalkedModel = "resnet50";
#endif

}  // namespace tapedeck::viewer
