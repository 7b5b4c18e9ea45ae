#include <tapedeck/capture/record/capture_mismatch.h>

namespace tapedeck {

const char* mismatch_name(MismatchKind kind) {
  switch (kind) {
    case MismatchKind::op:
      return "op";
    case MismatchKind::op_count:
      return "number of ops";
    case MismatchKind::operand_count:
      return "number of operands";
    case MismatchKind::type:
      return "type";
    case MismatchKind::attribute:
      return "attribute";
    case MismatchKind::input:
      return "input";
    case MismatchKind::internal_value:
      return "internal value";
    case MismatchKind::external_tensor:
      return "external tensor";
    case MismatchKind::constant:
      return "constant";
    case MismatchKind::result_count:
      return "number of results";
    case MismatchKind::result:
      return "result";
    case MismatchKind::write:
      return "write";
  }
  return "";
}

}  // namespace tapedeck
