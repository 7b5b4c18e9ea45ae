#include <tapedeck/engine/eager/draw_path.h>

#include <tapedeck/engine/ir/core_ops.h>

#include <cstring>
#include <string_view>

namespace tapedeck {

const Field* draw_path_field(const Op& op) {
  if (!op.attrs || !(op.is(kRandom) || &op == &ops::fold_in)) return nullptr;
  for (int i = 0; i < op.attrs->n_fields; ++i)
    if (op.attrs->fields[i].kind == FieldKind::string && std::string_view(op.attrs->fields[i].name) == "path")
      return &op.attrs->fields[i];
  return nullptr;
}

Name draw_path(const Field& field, const unsigned char* attrs) {
  Name path;
  std::memcpy(&path, attrs + field.offset, sizeof path);
  return path;
}

void set_draw_path(const Field& field, unsigned char* attrs, Name path) {
  std::memcpy(attrs + field.offset, &path, sizeof path);
}

std::unique_ptr<std::string> own_path(const Op& op, std::vector<unsigned char>& attrs) {
  const Field* field = draw_path_field(op);
  if (!field) return nullptr;
  auto text = std::make_unique<std::string>(draw_path(*field, attrs.data()).str());
  set_draw_path(*field, attrs.data(), borrowed_name(*text));
  return text;
}

}  // namespace tapedeck
