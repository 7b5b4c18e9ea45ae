#include <tapedeck/capture/file/foreign_file.h>

#include <tapedeck/capture/file/file.h>
#include <tapedeck/engine/ir/error.h>

#include <tapedeck/tests/capture/temporary_folder.h>

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <utility>

namespace tapedeck {
namespace {

using namespace std::string_literals;

constexpr const char* kGraphText = "graph g(%x: f32[2]) {\n  return %x\n}\n";

std::string message_of_load(const std::string& bytes) {
  const TemporaryFolder folder;
  const std::string path = folder.file("f.tape");
  std::ofstream(path, std::ios::binary) << bytes;
  try {
    load_tape(path);
  } catch (const FileError& error) {
    return std::string(error.what()).substr(path.size());
  }
  return "it was read";
}

TEST(ForeignFile, AFileOfAKnownKindIsToldByItsKind) {
  const std::pair<std::string, const char*> files[] = {
      {"", ": not a tape, but empty"},
      {kGraphText, ": not a tape, but the text of a graph; let its name end in .graph"},
      {"// recorded today\n\n  " + std::string(kGraphText),
       ": not a tape, but the text of a graph; let its name end in .graph"},
      {"PK\x03\x04 and more bytes", ": not a tape, but a zip archive, as .npz files and the weights of PyTorch are"},
      {"\x93NUMPY and more bytes", ": not a tape, but a .npy array"},
      {"\x1f\x8b\x08 and more bytes", ": not a tape, but packed by gzip"},
      {"\x80\x04\x95 and more bytes", ": not a tape, but a pickle of Python"},
      {"\x08\x07\x12\x07pytorch and more", ": not a tape, but a model in the ONNX format, which `tapedeck import` reads"},
      {"\x89PNG\r\n\x1a\n and more bytes"s, ": not a tape, but a PNG picture"},
      {"{\"nodes\": [1, 2, 3], \"more\": 0}", ": not a tape, but JSON; `tapedeck import` reads graphs of other programs"},
      {"{\"tapedeck_session\":1,\n\"budget\":{}}", ": not a tape, but a session of the viewer; open the file beside it"},
      {"graphics are fine, und sch\xc3\xb6n", ": not a tape, but text, and not that of a graph"},
  };
  for (const auto& [bytes, message] : files) EXPECT_EQ(message_of_load(bytes), message);
}

// The length of a header may be the first bytes of any other format. Such a file is a tape, or a damaged one.
TEST(ForeignFile, ABeginningThatCouldBeAHeaderIsNoForeignFile) {
  const std::string header = "\x1f\x8b\0\0\0\0\0\0"s, body = "{\"a\":1}" + std::string(0x8b1f, ' ');
  EXPECT_EQ(message_of_load(header + body).find("gzip"), std::string::npos);
  EXPECT_EQ(message_of_load(header + body.substr(0, 500)).find("gzip"), std::string::npos);  // cut off in its header
  EXPECT_NE(message_of_load(header + "x" + body.substr(0, 500)).find("gzip"), std::string::npos);
}

TEST(ForeignFile, TheTextOfAGraphIsKnownByItsFirstWord) {
  EXPECT_TRUE(begins_like_graph_text(kGraphText));
  EXPECT_TRUE(begins_like_graph_text("\n// graph\n// of a step\n\tgraph\nstep ("));
  for (const char* other : {"", "graph", "graphics", "// graph g", "/ graph g", "digraph g {", "%x = graph g"})
    EXPECT_FALSE(begins_like_graph_text(other)) << other;
  EXPECT_FALSE(is_graph_text("/no/such/file"));
  EXPECT_FALSE(is_graph_text("/"));
}

}  // namespace
}  // namespace tapedeck
