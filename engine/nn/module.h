// A module is any struct that derives from Module and has members that register themselves by name.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

class Module {
 public:
  Module() = default;
  Module(Module& parent, const std::string& name);
  Module(const Module&) = delete;
  virtual ~Module();

  // All parameters below this module, in registration order, named "fc1.weight". The tensors are the module's own handles.
  std::vector<Tensor> parameters() const;
  // State that is no parameter (running statistics), likewise, named "bn1.running_mean".
  std::vector<Tensor> buffers() const;
  const std::string& path() const { return path_; }
  bool training() const { return training_; }
  void train(bool on = true);  // dropout and its like act only while training
  Module& operator[](const std::string& child);

 protected:
  Tensor parameter(const std::string& name, Tensor initial);
  Tensor buffer(const std::string& name, Tensor initial, Role role = Role::statistic);

 private:
  std::string path_;
  std::vector<Module*> children_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> buffers_;
  bool training_ = true;
};

// A number that says which modules of the process are training: equal again once all are as they were. Replays compare it with
// what it was when they were recorded. Thread safe. O(1).
std::uint64_t training_modes();

// While one lives, what is recorded bears the module's whole path (modules know their names, the caller's scope does not
// matter) and the site of the user's call of the module.
class ModuleScope {
 public:
  ModuleScope(const Module& m, Site site);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;

 private:
  Name path_before_;
  Site site_before_;
};

// Initial values of parameter `name` of module m: uniform in +-gain/sqrt(fan_in), drawn from the stream "m.path.name".
Tensor initial_uniform(const Module& m, const std::string& name, const Shape& shape, std::int64_t fan_in, double gain = 1.0);
Tensor initial_normal(const Module& m, const std::string& name, const Shape& shape, double deviation);

}  // namespace TAPEDECK_API
