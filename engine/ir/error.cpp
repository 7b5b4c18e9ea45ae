#include <tapedeck/engine/ir/error.h>

namespace tapedeck {

std::string error_text(const char* op, const std::string& message, Site site) {
  std::string text;
  if (op && *op) text.append("[").append(op).append("] ");
  text += message;
  if (site.line > 0) text.append(" (").append(site.file).append(":").append(std::to_string(site.line)).append(")");
  return text;
}

}  // namespace tapedeck
