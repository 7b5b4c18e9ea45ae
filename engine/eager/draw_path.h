// The attribute `path` of ops that draw random numbers. The name that a caller gives is borrowed (DrawPath in thread_state.h):
// it ends with the call. Whoever keeps the attributes of a draw gives them a name of their own.
#pragma once

#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/names.h>

#include <memory>
#include <string>
#include <vector>

namespace tapedeck {

const Field* draw_path_field(const Op& op);  // null for ops whose attributes have no borrowed name
Name draw_path(const Field& field, const unsigned char* attrs);
void set_draw_path(const Field& field, unsigned char* attrs, Name path);

// Gives a copy of attributes a path of its own, which lives as long as the returned text. Returns null if the op borrows none.
std::unique_ptr<std::string> own_path(const Op& op, std::vector<unsigned char>& attrs);

}  // namespace tapedeck
