// new: writes a project that uses Tapedeck, ready to be built: CMakeLists.txt, main.cpp, README.md.
#include <tapedeck/capture/tool/commands/shared_options.h>
#include <tapedeck/capture/tool/files/outputs.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/reports/report.h>

#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

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

std::vector<Option> table(NewOptions& o) {
  return {{.name = "NAME",
           .to = &o.path,
           .help = "The folder to make. Its last part is the name of the project.",
           .required = true},
          json_option(&o.json)};
}

constexpr std::string_view kCMake = R"(cmake_minimum_required(VERSION 3.25)
project(@NAME@ LANGUAGES CXX)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
find_package(tapedeck 0.1 REQUIRED)
add_executable(@NAME@ main.cpp)
target_link_libraries(@NAME@ PRIVATE tapedeck::tapedeck)
)";

constexpr std::string_view kMain =
    R"(// A net learns a rule. The training step is written as eager code; its third call replays a plan of what the first two did.
#include <tapedeck/tapedeck.h>

#include <cstdio>

using namespace tapedeck;

struct Net : Module {
  Linear in{*this, "in", 16, 64}, out{*this, "out", 64, 4};
  Tensor operator()(const Tensor& x) { return out(relu(in(x))); }
};

int main() {
  manual_seed(1);
  Net net;
  AdamW optimizer(net.parameters(), {.lr = 3e-3});
  const Tensor x = normal({512, 16});
  const Tensor y = cast(argmax(matmul(x, normal({16, 4}))), DType::i32);  // the rule

  CapturedStep step = capture(
      [&](const std::vector<Tensor>& in) {
        const Tensor loss = cross_entropy(net(in[0]), in[1]);
        backward(loss);
        optimizer.step();
        optimizer.zero_grad();
        return std::vector<Tensor>{loss};
      },
      {.input_names = {"x", "y"}, .output_names = {"loss"}});

  for (int i = 0; i <= 100; ++i) {
    const Tensor loss = step({x, y})[0];
    if (i % 20 == 0) std::printf("step %3d  loss %.4f\n", i, loss.item());
  }
  step.save("@NAME@.tape");  // tapedeck plan, tapedeck replay and tapedeck-viewer read it
}
)";

constexpr std::string_view kReadme = R"(# @NAME@

    cmake -B build -DCMAKE_PREFIX_PATH=/where/tapedeck/is/installed
    cmake --build build
    build/@NAME@                               # trains, and writes @NAME@.tape

    tapedeck info @NAME@.tape                  # what the captured step consists of
    tapedeck plan @NAME@.tape --budget 70% -o p.tape
    tapedeck replay p.tape --check-eager
    tapedeck-viewer p.tape
)";

bool is_name(std::string_view name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !name.empty() && letter(name[0]) && name != "test" && name != "install" && name != "all" && name != "clean" &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_' || c == '-'; });
}

std::string filled(std::string_view text, const std::string& name) {
  constexpr std::string_view kMark = "@NAME@";
  std::string out(text);
  for (std::size_t at = out.find(kMark); at != out.npos; at = out.find(kMark, at + name.size()))
    out.replace(at, kMark.size(), name);
  return out;
}

// Makes the folder, and removes it again unless all files were written.
class NewFolder {
 public:
  explicit NewFolder(const std::filesystem::path& path) : path_(path) {
    std::error_code error;
    if (std::filesystem::exists(path, error)) throw FileError(fmt::format("{}: it is there already", path.string()));
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

int run(const NewOptions& request) {
  std::filesystem::path path = request.path;
  if (!path.has_filename()) path = path.parent_path();
  const std::string name = path.filename().string();
  if (!is_name(name))
    throw UsageError(fmt::format("new: '{}' cannot name a project: take letters, digits, '_' and '-', a letter first", name));
  const StopAtInterrupt stop;
  NewFolder folder(path);
  folder.write("CMakeLists.txt", filled(kCMake, name));
  folder.write("main.cpp", filled(kMain, name));
  folder.write("README.md", filled(kReadme, name));
  folder.keep();
  if (request.json) {
    answer(new_report(name, path.string(), {"CMakeLists.txt", "main.cpp", "README.md"}));
    return kOk;
  }
  answer(fmt::format(
      "wrote {0}/CMakeLists.txt, main.cpp and README.md\nbuild it: cmake -B {0}/build -S {0} && cmake --build {0}/build\n",
      path.string()));
  return kOk;
}

[[maybe_unused]] const bool registered = register_command(
    "new", CommandGroup::record, "Write a small project that uses the installed library: CMake, a program, a page.", table, run,
    "The program trains a net in a captured step and saves the step. Nothing is written over.");

}  // namespace

}  // namespace tapedeck::tool
