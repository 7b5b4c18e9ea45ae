// The ops that the engine itself runs or recognizes by name, outside of their own blocks. The block of each op in engine/ops/
// defines it.
//
// Every op block includes this header (through op_block.h). So a declaration whose type differs from its definition is a
// compile error, and a declaration without a definition is a link error.
#pragma once

#include <tapedeck/engine/ir/op.h>
#include <tapedeck/kernels/export.h>

namespace tapedeck TAPEDECK_API {
namespace ops {

// Arithmetic and selection.
extern const Op& add;
extern const Op& sub;
extern const Op& mul;
extern const Op& div;
extern const Op& where;
extern const Op& sum;

// Copies and conversions.
extern const Op& cast;
extern const Op& copy;

// Constants.
extern const Op& constant;
extern const Op& full;

// Views, and writes through views.
extern const Op& alias;
extern const Op& slice;
extern const Op& slice_assign;
extern const Op& stop_gradient;

// Randomness.
extern const Op& fold_in;
extern const Op& rng_next;

// Control flow.
extern const Op& cond;
extern const Op& loop_grad;
extern const Op& scan;
extern const Op& while_loop;

// A node with the author's own gradient.
extern const Op& custom_gradient;

}  // namespace ops
}  // namespace TAPEDECK_API
