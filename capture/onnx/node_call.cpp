#include <tapedeck/capture/onnx/node_call.h>

#include <tapedeck/capture/onnx/external_data.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ops/movement.h>
#include <tapedeck/kernels/half.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck::onnx {

namespace {

template <class To, class Element>
std::vector<To> elements(const void* bytes, std::size_t count) {
  const auto* first = static_cast<const Element*>(bytes);
  return {first, first + count};
}

template <class To, class Half>
std::vector<To> widened(const void* bytes, std::size_t count) {
  std::vector<To> result(count);
  for (std::size_t i = 0; i < count; ++i)
    result[i] = static_cast<To>(kernels::to_f32(Half{static_cast<const std::uint16_t*>(bytes)[i]}));
  return result;
}

template <class To>
std::vector<To> numbers_of(const Operand& known) {
  const auto count = static_cast<std::size_t>(known.tensor.numel());
  switch (known.tensor.dtype()) {
    case DType::f32:
      return elements<To, float>(known.bytes, count);
    case DType::f64:
      return elements<To, double>(known.bytes, count);
    case DType::f16:
      return widened<To, kernels::F16>(known.bytes, count);
    case DType::bf16:
      return widened<To, kernels::Bf16>(known.bytes, count);
    case DType::i32:
      return elements<To, std::int32_t>(known.bytes, count);
    case DType::i64:
      return elements<To, std::int64_t>(known.bytes, count);
    default:
      return elements<To, unsigned char>(known.bytes, count);
  }
}

}  // namespace

Operand known_operand(const Tensor& tensor) {
  const AbstractMode concrete(false);
  const Tensor dense = contiguous(tensor);
  static constexpr char kNothing = 0;
  const void* bytes = dense.numel() > 0 ? dense.data() : nullptr;
  return {dense, bytes != nullptr ? bytes : &kNothing};
}

Integers integers_of(const Operand& known) { return numbers_of<std::int64_t>(known); }
std::vector<double> reals_of(const Operand& known) { return numbers_of<double>(known); }

std::string describe(const Node& node) {
  return node.name.empty() ? fmt::format("a node ({}) without a name", node.op)
                           : fmt::format("node '{}' ({})", node.name, node.op);
}

void NodeCall::fail(const std::string& message) const {
  throw ParseError(fmt::format("{}: {}: {}", state_.path, describe(node_), message));
}

void NodeCall::note(const std::string& text) const {
  if (std::find(state_.notes.begin(), state_.notes.end(), text) == state_.notes.end()) state_.notes.push_back(text);
}

void NodeCall::take_steps(std::int64_t count) const {
  constexpr std::int64_t kMostSteps = 1 << 17;  // in both passes
  state_.recurrent_steps += count;
  if (state_.recurrent_steps > kMostSteps)
    fail(fmt::format("the recurrent layers of a model may have {} steps", kMostSteps / 2));
}

// ---- operands ----

const Tensor& NodeCall::operator[](std::size_t i) const {
  if (!has(i)) fail(fmt::format("operand {} is missing", i));
  return operands_[i].tensor;
}

Tensors NodeCall::all() const {
  Tensors tensors;
  for (std::size_t i = 0; i < count(); ++i) tensors.push_back((*this)[i]);
  return tensors;
}

const Operand& NodeCall::known(std::size_t i) const {
  if (!has(i)) fail(fmt::format("operand {} is missing", i));
  if (!is_known(i))
    fail(fmt::format("operand {} ('{}') decides a size and depends on data, so it is known only when the model runs", i,
                     node_.inputs[i]));
  return operands_[i];
}

Integers NodeCall::integers(std::size_t i) const {
  const Operand& o = known(i);
  if (is_floating(o.tensor.dtype()))
    fail(fmt::format("operand {} must hold integers, not {}", i, dtype_name(o.tensor.dtype())));
  return integers_of(o);
}

std::vector<double> NodeCall::reals(std::size_t i) const { return reals_of(known(i)); }

std::int64_t NodeCall::integer(std::size_t i) const {
  const Integers all = integers(i);
  if (all.size() != 1) fail(fmt::format("operand {} must hold one integer, not {}", i, all.size()));
  return all[0];
}

double NodeCall::real(std::size_t i) const {
  const std::vector<double> all = reals(i);
  if (all.size() != 1) fail(fmt::format("operand {} must hold one number, not {}", i, all.size()));
  return all[0];
}

// ---- results ----

std::int64_t NodeCall::stated_size(std::size_t i, std::size_t axis, std::size_t rank) const {
  if (!wants(i)) return -1;
  const auto it = graph_.values.find(node_.outputs[i]);
  if (it == graph_.values.end() || it->second.shape.size() != rank) return -1;
  return std::max<std::int64_t>(it->second.shape[axis].size, -1);
}

// ---- attributes ----

const Attribute* NodeCall::find(std::string_view name) const {
  const auto it = node_.attributes.find(std::string(name));
  return it == node_.attributes.end() ? nullptr : &it->second;
}

const Attribute* NodeCall::find(std::string_view name, AttributeKind kind, const char* kind_name) const {
  const Attribute* a = find(name);
  if (a != nullptr && a->kind != kind) fail(fmt::format("the attribute '{}' must be {}", name, kind_name));
  return a;
}

std::int64_t NodeCall::integer(std::string_view name, std::int64_t otherwise) const {
  const Attribute* a = find(name, AttributeKind::integer, "an integer");
  return a == nullptr ? otherwise : a->integer;
}

std::int64_t NodeCall::integer(std::string_view name) const {
  if (!has(name)) fail(fmt::format("the attribute '{}' is missing", name));
  return integer(name, 0);
}

double NodeCall::real(std::string_view name, double otherwise) const {
  const Attribute* a = find(name, AttributeKind::real, "a number");
  return a == nullptr ? otherwise : a->real;
}

std::string NodeCall::text(std::string_view name, const std::string& otherwise) const {
  const Attribute* a = find(name, AttributeKind::text, "a text");
  return a == nullptr ? otherwise : a->text;
}

// An empty list may be written as a list of another type.
Integers NodeCall::integers(std::string_view name, const Integers& otherwise) const {
  const Attribute* a = find(name);
  if (a == nullptr) return otherwise;
  if (a->kind != AttributeKind::integers && !(a->integers.empty() && a->reals.empty() && a->texts.empty()))
    fail(fmt::format("the attribute '{}' must be a list of integers", name));
  return a->integers;
}

std::vector<double> NodeCall::reals(std::string_view name, const std::vector<double>& otherwise) const {
  const Attribute* a = find(name, AttributeKind::reals, "a list of numbers");
  return a == nullptr ? otherwise : a->reals;
}

std::vector<std::string> NodeCall::texts(std::string_view name, const std::vector<std::string>& otherwise) const {
  const Attribute* a = find(name, AttributeKind::texts, "a list of texts");
  return a == nullptr ? otherwise : a->texts;
}

const TensorData* NodeCall::tensor(std::string_view name) const {
  const Attribute* a = find(name, AttributeKind::tensor, "a tensor");
  return a == nullptr ? nullptr : a->tensor.get();
}

Integers NodeCall::integers(std::size_t i, std::string_view name, const Integers& otherwise) const {
  return has(i) ? integers(i) : integers(name, otherwise);
}

// ---- checks ----

std::int64_t NodeCall::axis(std::int64_t given, std::int64_t rank) const {
  const std::int64_t axis = given < 0 ? given + rank : given;
  if (axis < 0 || axis >= rank) fail(fmt::format("there is no axis {} in a tensor of {} dimensions", given, rank));
  return axis;
}

DType NodeCall::dtype(std::int64_t element_type) const {
  const std::optional<DType> dtype = dtype_of(element_type);
  if (!dtype) fail(fmt::format("elements of type {} are not supported", element_type_name(element_type)));
  return *dtype;
}

Shape NodeCall::shape(const Integers& sizes) const {
  if (sizes.size() > static_cast<std::size_t>(kMaxRank))
    fail(fmt::format("{} dimensions are more than the {} that a tensor can have", sizes.size(), kMaxRank));
  if (checked_bytes(DType::f64, sizes) < 0)
    fail(fmt::format("sizes must not be negative, nor make more than {} bytes", kMaxTypeBytes));
  return Shape(std::span<const std::int64_t>(sizes));
}

Ints NodeCall::list(const Integers& values) const {
  if (values.size() > static_cast<std::size_t>(kMaxRank)) fail(fmt::format("a list of {} numbers is too long", values.size()));
  Ints list;
  for (std::int64_t v : values) list.push_back(v);
  return list;
}

// ---- tensors with data ----

Tensor known_tensor(const Type& type, const void* bytes) {
  const AbstractMode concrete(false);
  return from_bytes(type, bytes);
}

Tensor known_integers(const Integers& values) {
  return known_tensor({DType::i64, {static_cast<std::int64_t>(values.size())}}, values.data());
}

Tensor tensor_of(const TensorData& data, const std::string& path) {
  const std::optional<DType> dtype = dtype_of(data.element_type);
  if (!dtype)
    throw ParseError(fmt::format("{}: tensor '{}' has elements of type {}, which are not supported", path, data.name,
                                 element_type_name(data.element_type)));
  if (data.sizes.size() > static_cast<std::size_t>(kMaxRank))
    throw ParseError(
        fmt::format("{}: tensor '{}' has {} dimensions, more than {}", path, data.name, data.sizes.size(), kMaxRank));
  const Type type{*dtype, Shape(std::span<const std::int64_t>(data.sizes))};
  if (!data.external.empty()) return read_external(data, type, path);
  if (static_cast<std::int64_t>(data.bytes.size()) != type.bytes())
    throw ParseError(
        fmt::format("{}: tensor '{}' has {} bytes instead of {}", path, data.name, data.bytes.size(), type.bytes()));
  return known_tensor(type, data.bytes.data());
}

Operand file_operand(const TensorData& data, const std::string& path) {
  if (!data.external.empty()) throw ParseError(fmt::format("{}: the value of an attribute lies in another file", path));
  return {tensor_of(data, path), data.bytes.data()};
}

}  // namespace tapedeck::onnx
