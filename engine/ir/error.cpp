#include <tapedeck/engine/ir/error.h>

namespace tapedeck {

std::string ErrorText::str() const {
  std::string text;
  if (!op.empty()) text.append("[").append(op).append("] ");
  text += message;
  if (line > 0) text.append(" (").append(file).append(":").append(std::to_string(line)).append(")");
  return text;
}

Error::Error(const std::string& message)
    : std::runtime_error(message), text_(std::make_shared<const ErrorText>(ErrorText{"", message, "", 0})) {}

Error::Error(ErrorText text) : std::runtime_error(text.str()), text_(std::make_shared<const ErrorText>(std::move(text))) {}

Error::Error(const std::string& what, ErrorText text)
    : std::runtime_error(what), text_(std::make_shared<const ErrorText>(std::move(text))) {}

ErrorText error_text(const char* op, std::string message, Site site) {
  ErrorText text;
  if (op) text.op = op;
  text.message = std::move(message);
  if (site.line > 0) text.file = site.file, text.line = site.line;
  return text;
}

}  // namespace tapedeck
