// The base of modules. A module is a struct that derives from Module. Its parameters and its child modules register themselves
// by name in their constructors.
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace tapedeck TAPEDECK_API {

namespace detail {
class CallHooks;
}

class Module {
 public:
  Module() = default;
  // Becomes a child of `parent`, until either is destroyed. A module that replaces a child of the same name takes its place
  // once the old one is destroyed.
  Module(Module& parent, const std::string& name);
  Module(const Module&) = delete;
  virtual ~Module();

  // All parameters of this module and its children, in the order of registration, with names such as "fc1.weight". The
  // tensors are the module's own handles. Throws UsageError if two children have one name.
  std::vector<Tensor> parameters() const;
  // All state that is not a parameter (running statistics), in the same order, with names such as "bn1.running_mean". Throws as
  // parameters() does.
  std::vector<Tensor> buffers() const;
  std::vector<Tensor> trainable_parameters() const;                   // the parameters that are not frozen, in the same order
  const std::vector<Module*>& children() const { return children_; }  // in the order of registration
  const std::string& path() const { return path_; }
  bool training() const { return training_; }
  void train(bool on = true);                    // dropout and batch norm behave differently while training
  Module& operator[](const std::string& child);  // UsageError if there is no such child, or if there are two

  // Stops and starts the training of all parameters of this module and its children. A frozen parameter needs no gradient,
  // freeze() drops the gradient that it has, and optimizers skip it. Its moments stay as they are, so after unfreeze() the
  // training goes on from them. Throws CaptureError inside a capture; a captured step is recorded again after either call.
  void freeze(Site site = {__builtin_FILE(), __builtin_LINE()});
  void unfreeze(Site site = {__builtin_FILE(), __builtin_LINE()});

  // Converts all floating parameters and buffers, and the gradients of parameters, to a floating dtype. Integers and bools
  // stay. Every tensor stays the same object: all its handles see the new dtype, and get new bytes. A pointer from data() is
  // invalid afterwards. If it throws, nothing has changed.
  // - An optimizer that was made before keeps moments of the old dtype, and its next step is a UsageError: make it after to().
  // - A captured step is recorded again.
  // - A loss that was computed before is differentiated at the old values; the gradient gets the new dtype.
  // Throws UsageError if the dtype is not floating, or if a parameter or buffer is a view of another tensor; CaptureError
  // inside a capture. O(bytes).
  void to(DType dtype, Site site = {__builtin_FILE(), __builtin_LINE()});
  // Moves all parameters and buffers to a device ("cuda", "cpu"), with the gradients that they have. The rules of to(dtype)
  // hold, but for dtypes: handles stay, and an optimizer that was made before keeps its moments elsewhere, so it is made after
  // the move. Throws DeviceError if this machine does not have the device. O(bytes).
  void to(const std::string& device, Site site = {__builtin_FILE(), __builtin_LINE()});

 protected:
  // Both throw UsageError if the module has a parameter or buffer of this name already.
  Tensor parameter(const std::string& name, Tensor initial);
  Tensor buffer(const std::string& name, Tensor initial, Role role = Role::statistic);

 private:
  friend class detail::CallHooks;
  void require_new_name(const std::string& name) const;
  void require_distinct_children() const;
  void forget(const Module& child);

  std::string path_;
  Module* parent_ = nullptr;
  std::vector<Module*> children_;
  std::vector<Tensor> parameters_;
  std::vector<Tensor> buffers_;
  std::shared_ptr<detail::CallHooks> call_hooks_;  // null until the first hook is added (hooks.h)
  bool training_ = true;
};

// A number that tells which modules of the process are training. If all modules have the same modes again, the number is the
// same again. A replay compares it with the number at its recording. Thread safe. O(1).
std::uint64_t training_modes();

// As long as a ModuleScope lives, recorded nodes get the full path of the module and the site of the user's call of the
// module. The path does not depend on the scope of the caller.
class ModuleScope {
 public:
  ModuleScope(const Module& m, Site site);
  ~ModuleScope();
  ModuleScope(const ModuleScope&) = delete;

 private:
  Name path_before_;
  Site site_before_;
};

// First values for parameter `name` of module m: uniform in +-gain/sqrt(fan_in), or normal with this deviation. They are
// drawn from the stream "m.path.name".
Tensor initial_uniform(const Module& m, const std::string& name, const Shape& shape, std::int64_t fan_in, double gain = 1.0);
Tensor initial_normal(const Module& m, const std::string& name, const Shape& shape, double deviation);

}  // namespace TAPEDECK_API
