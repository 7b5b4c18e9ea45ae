// Direct access to the attribute pool of a graph, for the few files of the engine that check it or fill it.
#pragma once

#include <tapedeck/engine/ir/graph.h>

#include <cstddef>
#include <span>
#include <vector>

namespace tapedeck {

class GraphAccess {
 public:
  static const std::vector<unsigned char>& attr_pool(const Graph& graph) { return graph.attr_pool_; }
  static std::vector<unsigned char>& attr_pool(Graph& graph) { return graph.attr_pool_; }
  static unsigned char* attributes(Graph& graph, const Node& node) {
    return node.attrs == kNone ? nullptr : graph.attr_pool_.data() + node.attrs;
  }
};

// Attribute structs start at multiples of this in the pool.
inline constexpr std::size_t kAttrAlignment = alignof(std::max_align_t);

// A field of an attribute struct.
template <class T>
const T& field_of(const void* attrs, const Field& field) {
  return *reinterpret_cast<const T*>(static_cast<const unsigned char*>(attrs) + field.offset);
}

// The bytes that a field of this kind takes in an attribute struct.
inline std::size_t field_bytes(FieldKind kind) {
  switch (kind) {
    case FieldKind::integer:
      return sizeof(std::int64_t);
    case FieldKind::real:
      return sizeof(double);
    case FieldKind::boolean:
      return sizeof(bool);
    case FieldKind::string:
      return sizeof(Name);
    case FieldKind::dtype:
      return sizeof(DType);
    case FieldKind::ints:
      return sizeof(Ints);
    case FieldKind::tensor:
      return sizeof(TensorIndex);
  }
  return 0;
}

inline std::span<const Field> fields_of(const Op& op) {
  return op.attrs ? std::span<const Field>(op.attrs->fields, static_cast<std::size_t>(op.attrs->n_fields))
                  : std::span<const Field>();
}

// The op's field that holds a tensor (only constants have one), or null.
inline const Field* tensor_field(const Op& op) {
  for (const Field& field : fields_of(op))
    if (field.kind == FieldKind::tensor) return &field;
  return nullptr;
}

}  // namespace tapedeck
