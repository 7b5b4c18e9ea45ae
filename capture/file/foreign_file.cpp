#include <tapedeck/capture/file/foreign_file.h>

#include <tapedeck/capture/formats/input_file.h>
#include <tapedeck/engine/ir/error.h>

#include <algorithm>
#include <filesystem>
#include <utility>

namespace tapedeck {

namespace {

bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }

// The bytes behind blanks and // comments.
std::string_view after_comments(std::string_view text) {
  for (;;) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    if (!text.starts_with("//")) return text;
    text.remove_prefix(std::min(text.find('\n'), text.size()));
  }
}

// Text in UTF-8 has no zero and no other control character.
bool is_text(std::string_view bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](char c) { return static_cast<unsigned char>(c) >= ' ' || is_blank(c) || c == '\f'; });
}

// A model in the ONNX format begins with its field 1, the version of the format as a small number, and a field that may follow.
bool begins_like_onnx(std::string_view begin) {
  constexpr std::string_view kNextFields = "\x12\x1a\x22\x28\x32\x3a\x42";
  return begin.size() > 2 && begin[0] == '\x08' && begin[1] > 0 && begin[1] < 32 &&
         kNextFields.find(begin[2]) != std::string_view::npos;
}

constexpr std::pair<std::string_view, const char*> kMarks[] = {
    {"PK\x03\x04", "a zip archive, as .npz files and the weights of PyTorch are"},
    {"\x93NUMPY", "a .npy array"},
    {"\x1f\x8b", "packed by gzip"},
    {"\x80\x02", "a pickle of Python"},
    {"\x80\x03", "a pickle of Python"},
    {"\x80\x04", "a pickle of Python"},
    {"\x80\x05", "a pickle of Python"},
    {"\x89PNG", "a PNG picture"},
    {"%PDF-", "a PDF document"},
    {"<svg", "an SVG picture"},
    {"{\"tapedeck_session\"", "a session of the viewer; open the file beside it"},
};

}  // namespace

bool begins_like_graph_text(std::string_view begin) {
  constexpr std::string_view kWord = "graph";
  const std::string_view text = after_comments(begin);
  return text.starts_with(kWord) && text.size() > kWord.size() && is_blank(text[kWord.size()]);
}

bool is_graph_text(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return false;
  try {
    const InputFile file(path);
    std::string begin(std::min<std::uint64_t>(file.size(), kForeignBytes), '\0');
    file.read(0, {reinterpret_cast<unsigned char*>(begin.data()), begin.size()});
    return begins_like_graph_text(begin);
  } catch (const FileError&) {
    return false;
  }
}

std::string foreign_kind(std::string_view begin) {
  if (begin.empty()) return "empty";
  for (const auto& [mark, kind] : kMarks)
    if (begin.starts_with(mark)) return kind;
  if (begins_like_onnx(begin)) return "a model in the ONNX format, which `tapedeck import` reads";
  if (!is_text(begin)) return "";
  if (begins_like_graph_text(begin)) return "the text of a graph; let its name end in .graph";
  const std::string_view text = after_comments(begin);
  if (text.starts_with('{') || text.starts_with('[')) return "JSON; `tapedeck import` reads graphs of other programs";
  return "text, and not that of a graph";
}

}  // namespace tapedeck
