// Implements program.h: makes tensors of random elements, and builds the training step of train().
#include <tapedeck/tests/agree/program.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ops/ops.h>

#include <tapedeck/tests/engine/half_values.h>

#include <cmath>
#include <random>

namespace tapedeck::agree {

namespace {

template <class T>
Tensor filled(const Type& type, Range range, std::mt19937_64& random, bool integer) {
  std::vector<T> values(static_cast<std::size_t>(type.numel()) + 1);
  for (T& v : values) {
    const double x = range.low + (range.high - range.low) * static_cast<double>(random() >> 11) * 0x1p-53;
    v = static_cast<T>(integer ? std::floor(x) : x);
  }
  return from_bytes(type, values.data());
}

Tensor filled_half(const Type& type, Range range, std::mt19937_64& random) {
  std::vector<std::uint16_t> values(static_cast<std::size_t>(type.numel()) + 1);
  for (std::uint16_t& v : values)
    v = testing::half_bits(type.dtype, range.low + (range.high - range.low) * static_cast<double>(random() >> 11) * 0x1p-53);
  return from_bytes(type, values.data());
}

}  // namespace

Tensor drawn(const Type& type, Range range, std::uint64_t key) {
  std::mt19937_64 random(key);
  switch (type.dtype) {
    case DType::f32:
      return filled<float>(type, range, random, false);
    case DType::f64:
      return filled<double>(type, range, random, false);
    case DType::f16:
    case DType::bf16:
      return filled_half(type, range, random);
    case DType::i32:
      return filled<std::int32_t>(type, range, random, true);
    case DType::i64:
      return filled<std::int64_t>(type, range, random, true);
    case DType::u8:
      return filled<unsigned char>(type, range, random, true);
    case DType::boolean:
      break;
  }
  return filled<unsigned char>(type, range, random, true);
}

Tensor copied(const Tensor& t) {
  std::vector<unsigned char> bytes(static_cast<std::size_t>(t.bytes()) + 1);
  t.copy_to(bytes.data(), static_cast<std::size_t>(t.bytes()), dtype_size(t.dtype()));
  return from_bytes(t.type(), bytes.data());
}

Tensors copied(const Tensors& tensors) {
  Tensors all;
  for (const Tensor& t : tensors) all.push_back(copied(t));
  return all;
}

Program::Program(std::uint64_t seed) : seed_(seed) { manual_seed(seed); }

void Program::input(const Shape& shape, Range range, DType dtype) { inputs_.push_back({{dtype, shape}, range}); }

Tensor Program::leaf(const std::string& name, const Type& type, Range range, Role role) {
  Tensor t = drawn(type, range, seed_ * 1000003 + ++leaves_);
  t.role(role);
  if (!name.empty()) t.name(name);
  return t;
}

Tensor Program::parameter(const std::string& name, const Shape& shape, Range range, DType dtype) {
  Tensor t = leaf(name, {dtype, shape}, range, Role::parameter);
  t.requires_grad(true);
  state_.push_back(t);
  return t;
}

Tensor Program::buffer(const std::string& name, const Shape& shape, Range range, DType dtype) {
  Tensor t = leaf(name, {dtype, shape}, range, Role::statistic);
  state_.push_back(t);
  return t;
}

Tensor Program::constant(const Shape& shape, Range range, DType dtype) { return leaf("", {dtype, shape}, range, Role::none); }

void Program::watch(const Module& module) {
  watch(module.parameters());
  watch(module.buffers());
}

void Program::train(Step forward, Tensors wrt, Optimizer* optimizer) {
  forward_ = std::move(forward);
  wrt_ = std::move(wrt);
  if (optimizer) watch(optimizer->state());
  step_ = [this, optimizer](const Tensors& in) {
    Tensors results = forward_(in);
    backward(results[0]);
    for (Tensor p : wrt_) {
      if (branches_) p.set_grad(p.grad().defined() ? p.grad() + 0 : zeros(p.shape(), p.dtype()));
      results.push_back(p.grad().defined() ? p.grad() : zeros(p.shape(), p.dtype()));
    }
    if (optimizer)
      optimizer->step();
    else
      next_step();
    for (Tensor p : wrt_) p.set_grad(Tensor());
    return results;
  };
}

Tensors Program::inputs(int step) const {
  Tensors all;
  for (std::size_t i = 0; i < inputs_.size(); ++i)
    all.push_back(
        drawn(inputs_[i].type, inputs_[i].range, (seed_ * 101 + i) * 7919 + static_cast<std::uint64_t>(step) * 104729 + 17));
  return all;
}

}  // namespace tapedeck::agree
