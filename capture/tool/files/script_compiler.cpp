#include <tapedeck/capture/tool/files/script_compiler.h>

#include <tapedeck/capture/tool/files/child.h>

#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string_view>

namespace tapedeck::tool {

namespace {

namespace fs = std::filesystem;

std::vector<std::string> compiler_words() {
  std::vector<std::string> words;
  const char* const chosen = std::getenv("CXX");
  std::istringstream text(chosen ? chosen : "");
  for (std::string word; text >> word;) words.push_back(word);
  if (words.empty()) words = {::access(TAPEDECK_CXX, X_OK) == 0 ? TAPEDECK_CXX : "c++"};
  return words;
}

int note_library(dl_phdr_info* object, std::size_t, void* found) {
  const fs::path path = object->dlpi_name;
  if (!path.filename().string().starts_with("libtapedeck.so")) return 0;
  *static_cast<fs::path*>(found) = path;
  return 1;
}

fs::path loaded_library() {
  fs::path library;
  dl_iterate_phdr(note_library, &library);
  std::error_code error;
  library = fs::canonical(library, error);
  if (error) throw FileError("run: the library of this tool, libtapedeck.so, is not found: " + error.message());
  return library;
}

// In a build tree the headers are in include/ beside lib/; an installation may have its libraries deeper.
std::string headers_beside(const fs::path& library) {
  for (const char* way : {TAPEDECK_INCLUDE_FROM_LIBRARY, "../include"}) {
    const fs::path folder = (library.parent_path() / way).lexically_normal();
    std::error_code ignored;
    if (fs::exists(folder / "tapedeck/tapedeck.h", ignored)) return folder.string();
  }
  throw FileError(fmt::format("run: the headers of the library are not installed beside {}", library.string()));
}

std::string version_of(const std::vector<std::string>& command) {
  std::vector<std::string> words = command;
  words.push_back("--version");
  std::string version;
  const ChildEnd end = run_child(words, {.output = &version});
  if (end.error || end.code || end.signal)
    throw DeviceError(fmt::format("run: the C++ compiler '{}' cannot be run{}; install one, or name one in CXX", command[0],
                                  end.error ? fmt::format(": {}", std::strerror(end.error)) : ""));
  return version;
}

}  // namespace

ScriptCompiler find_compiler() {
  ScriptCompiler found;
  const fs::path library = loaded_library();
  found.library = library.string();
  found.include_folder = headers_beside(library);
  found.command = compiler_words();
  found.version = version_of(found.command);
  return found;
}

std::vector<std::string> compile_command(const ScriptCompiler& compiler, const std::vector<std::string>& flags,
                                         const std::string& script, const std::string& program, const std::string& inputs) {
  std::vector<std::string> words = compiler.command;
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  add({"-std=c++20", "-O2", "-I", compiler.include_folder, "-MMD", "-MF", inputs, "-MT", "program"});
  if (constexpr std::string_view kNames = TAPEDECK_SANITIZE_NAMES; !kNames.empty())
    words.push_back(fmt::format("-fsanitize={}", kNames));
  add({"-x", "c++", script, "-x", "none", "-o", program, compiler.library,
       "-Wl,-rpath," + fs::path(compiler.library).parent_path().string()});
  words.insert(words.end(), flags.begin(), flags.end());
  return words;
}

// "program: a.cpp dir/with\ space.h \", lines that go on behind a backslash; a dollar stands twice.
std::vector<std::string> listed_inputs(const std::string& text) {
  std::vector<std::string> inputs;
  std::string name;
  const auto end_name = [&] {
    if (!name.empty()) inputs.push_back(name);
    name.clear();
  };
  const std::size_t colon = text.find(": ");
  for (std::size_t i = colon == text.npos ? text.size() : colon + 2; i < text.size(); ++i) {
    const char next = i + 1 < text.size() ? text[i + 1] : '\n';
    if (text[i] == '\\' && (next == ' ' || next == '#'))
      name += text[++i];
    else if (text[i] == '\\' && next == '\n')
      end_name();
    else if (text[i] == '$' && next == '$')
      name += text[++i];
    else if (text[i] == ' ' || text[i] == '\n')
      end_name();
    else
      name += text[i];
  }
  end_name();
  return inputs;
}

}  // namespace tapedeck::tool
