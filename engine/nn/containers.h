// Modules that hold other modules: Sequential applies its layers one after another, and ModuleList holds layers of one type.
// Their children are named by number, so that names are as in PyTorch: "features.0.weight", "blocks.3.fc1.bias".
#pragma once

#include <tapedeck/engine/nn/module.h>

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace tapedeck TAPEDECK_API {

// Layers and functions that are applied in the order in which they were added. A function takes a number too, but has no
// parameters:
//     Sequential body{*this, "body"};
//     body.add<Linear>(4, 8).add(&relu).add<Linear>(8, 2);        // parameters: body.0.weight, body.0.bias, body.2.weight, ...
//     y = body(x);
// Errors of all layers name the call of the Sequential.
class Sequential : public Module {
 public:
  using Module::Module;

  // Makes a layer as Layer(*this, name, args...). It is called with one tensor and returns one. The name is the layer's
  // number, or the given name. Throws what the constructor of the layer throws.
  template <class Layer, class... Args>
  Sequential& add(Args&&... args) {
    return add_as<Layer>(std::to_string(steps_.size()), std::forward<Args>(args)...);
  }
  template <class Layer, class... Args>
  Sequential& add_as(const std::string& name, Args&&... args) {
    auto layer = std::make_unique<Layer>(*this, name, std::forward<Args>(args)...);
    Layer* const made = layer.get();
    steps_.push_back({std::move(layer), [made](const Arg& x) -> Tensor { return (*made)(x); }});
    return *this;
  }
  // Adds a function of one tensor that returns one, such as &relu or a lambda.
  template <class Function>
  requires(std::is_invocable_v<Function&, const Arg&> ||
           std::is_invocable_v<Function&, const Tensor&>) Sequential& add(Function function) {
    if constexpr (std::is_invocable_v<Function&, const Arg&>)
      steps_.push_back({nullptr, [f = std::move(function)](const Arg& x) mutable -> Tensor { return f(x); }});
    else
      steps_.push_back({nullptr, [f = std::move(function)](const Arg& x) mutable -> Tensor { return f(x.tensor()); }});
    return *this;
  }

  Tensor operator()(const Arg& x);                    // x itself if there are no layers
  std::size_t size() const { return steps_.size(); }  // layers and functions
  const Module* layer(std::size_t index) const;       // null if it is a function; UsageError if there is no such number

 private:
  struct Step {
    std::unique_ptr<Module> layer;
    std::function<Tensor(const Arg&)> apply;
  };
  std::vector<Step> steps_;
};

// Layers of one type, named by number. The author calls them:
//     ModuleList<TransformerBlock> blocks{*this, "blocks"};
//     for (int i = 0; i < 12; ++i) blocks.add(768, options);
//     for (TransformerBlock& block : blocks) h = block(h);
template <class Layer>
class ModuleList : public Module {
 public:
  using Module::Module;
  using Module::operator[];

  template <class... Args>
  Layer& add(Args&&... args) {
    return layers_.emplace_back(*this, std::to_string(layers_.size()), std::forward<Args>(args)...);
  }

  std::size_t size() const { return layers_.size(); }
  bool empty() const { return layers_.empty(); }
  Layer& operator[](std::size_t index) { return layers_[index]; }  // REQUIRES: index < size()
  Layer& operator[](int index) { return layers_[static_cast<std::size_t>(index)]; }
  auto begin() { return layers_.begin(); }
  auto end() { return layers_.end(); }

 private:
  std::deque<Layer> layers_;  // a deque moves no layer when it grows
};

}  // namespace TAPEDECK_API
