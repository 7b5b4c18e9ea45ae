#include <tapedeck/capture/onnx/node_call.h>

#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <algorithm>

namespace tapedeck::onnx {

namespace {

template <class To>
std::vector<To> numbers_of(const Tensor& t) {
  const auto convert = [](const auto& from) { return std::vector<To>(from.begin(), from.end()); };
  switch (t.dtype()) {
    case DType::f64:
      return convert(t.to_vector<double>());
    case DType::i32:
      return convert(t.to_vector<std::int32_t>());
    case DType::i64:
      return convert(t.to_vector<std::int64_t>());
    case DType::u8:
    case DType::boolean:
      return convert(t.to_vector<unsigned char>());
    default:
      return convert(t.to_vector<float>());
  }
}

}  // namespace

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

const Tensor& NodeCall::known(std::size_t i) const {
  if (!has(i)) fail(fmt::format("operand {} is missing", i));
  if (!is_known(i))
    fail(fmt::format("operand {} ('{}') decides a size and depends on data, so it is known only when the model runs", i,
                     node_.inputs[i]));
  return operands_[i].known;
}

Integers NodeCall::integers(std::size_t i) const {
  const Tensor& t = known(i);
  if (is_floating(t.dtype())) fail(fmt::format("operand {} must hold integers, not {}", i, dtype_name(t.dtype())));
  return numbers_of<std::int64_t>(t);
}

std::vector<double> NodeCall::reals(std::size_t i) const { return numbers_of<double>(known(i)); }

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
  return known_tensor({*dtype, Shape(std::span<const std::int64_t>(data.sizes))}, data.bytes.data());
}

}  // namespace tapedeck::onnx
