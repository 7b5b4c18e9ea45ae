// new: writes a project that uses Tapedeck, ready to be built: CMakeLists.txt, main.cpp, README.md.
//
// The program is samples/02_replay.cpp, which saves its step to a file of the project's name; the other files are in
// new_project/, with @NAME@ for the name. CMake puts their texts into new_project.h in the build tree.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <new_project.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <string_view>

namespace tapedeck::tool {

namespace {

struct NewOptions {
  std::string path;
  bool json = false;
};

std::vector<Option> new_table(NewOptions& o) {
  return {{.name = "NAME",
           .to = &o.path,
           .help = "The folder to make. Its last part is the name of the project.",
           .required = true},
          json_option(&o.json)};
}

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !name.empty() && letter(name[0]) && name != "test" && name != "install" && name != "all" && name != "clean" &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

std::string replaced(std::string text, std::string_view what, const std::string& by) {
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + by.size()))
    text.replace(at, what.size(), by);
  return text;
}
std::string filled(std::string_view text, const std::string& name) { return replaced(std::string(text), "@NAME@", name); }
std::string program(const std::string& name) { return replaced(std::string(kNewProgram), "step.tape", name + ".tape"); }

// Makes the folder, and removes it again unless all files were written.
class NewFolder {
 public:
  explicit NewFolder(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    if (std::filesystem::exists(path, error))
      throw FileError(fmt::format("{}: it is there already; give a name that no file and no folder has", path.string()));
    if (!std::filesystem::create_directory(path, error))
      throw FileError(fmt::format("{}: cannot make the folder: {}", path.string(), error.message()));
  }
  ~NewFolder() {
    std::error_code ignored;
    if (!kept_) std::filesystem::remove_all(path_, ignored);
  }
  NewFolder(const NewFolder&) = delete;

  void write(const char* file, const std::string& text) {
    AtomicWriter writer((path_ / file).string());
    writer.write(text);
    writer.commit();
  }
  void keep() { kept_ = true; }

 private:
  const std::filesystem::path path_;
  bool kept_ = false;
};

// The folder that this program is installed in, beside the package that the project looks for; empty in a build tree.
std::string installed_prefix() {
  std::error_code error;
  const std::filesystem::path prefix = std::filesystem::canonical("/proc/self/exe", error).parent_path().parent_path();
  if (error) return "";
  for (const char* libraries : {"lib", TAPEDECK_LIBRARY_FOLDER})
    if (std::filesystem::exists(prefix / libraries / "cmake/tapedeck/tapedeck-config.cmake", error)) return prefix.string();
  return "";
}

int run_new(const NewOptions& request) {
  std::filesystem::path path = request.path;
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = path.filename().string();
  if (!is_name(name))
    throw UsageError(fmt::format("new: '{}' cannot name a project: take letters, digits, '_' and '-', a letter first", name));
  const StopAtInterrupt stop;
  NewFolder folder(path);
  folder.write("CMakeLists.txt", filled(kNewCMake, name));
  folder.write("main.cpp", program(name));
  folder.write("README.md", filled(kNewReadme, name));
  folder.keep();
  if (request.json) {
    answer(new_report(name, path.string(), {"CMakeLists.txt", "main.cpp", "README.md"}));
    return kOk;
  }
  const std::string prefix = installed_prefix();
  answer(
      fmt::format("wrote {0}/CMakeLists.txt, main.cpp and README.md\n"
                  "build it: cmake -B {0}/build -S {0} -DCMAKE_PREFIX_PATH={1} && cmake --build {0}/build\n{2}",
                  path.string(), prefix.empty() ? "PREFIX" : prefix,
                  prefix.empty() ? "where PREFIX is the folder that cmake --install wrote to\n" : ""));
  return kOk;
}

[[maybe_unused]] const bool new_registered = register_command(
    "new", CommandGroup::record, "Write a small project that uses the installed library: CMake, a program, a page.", new_table,
    run_new, "The program trains a net in a captured step and saves the step. Nothing is written over.");

}  // namespace

}  // namespace tapedeck::tool
