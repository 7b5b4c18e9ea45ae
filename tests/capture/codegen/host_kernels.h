// Runs generated kernels on the host: the compiler that built the tests makes a library of their text, and every thread of the
// launch is a call.
#pragma once

#include <tapedeck/capture/codegen/fused_source.h>
#include <tapedeck/tests/capture/codegen/fused_case.h>
#include <tapedeck/tests/capture/temporary_folder.h>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace tapedeck::test {

// A library compiled from a text. why() says why there is none.
class HostLibrary {
 public:
  explicit HostLibrary(const std::string& text) {
    const std::string source = folder_.file("kernels.cpp"), library = folder_.file("kernels.so"), log = folder_.file("log");
    write_all(source, text);
    if (::access(TAPEDECK_CXX, X_OK) != 0) {
      why_ = "there is no compiler " TAPEDECK_CXX;
      return;
    }
    const std::string command = std::string(TAPEDECK_CXX " -std=c++20 -w -O0 -ffp-contract=off -shared -fPIC -o ") + library +
                                " " + source + " 2>" + log;
    if (std::system(command.c_str()) != 0)
      ADD_FAILURE() << read_all(log).substr(0, 4000);
    else
      library_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library_) why_ = "the kernels do not compile";
  }
  ~HostLibrary() {
    if (library_) ::dlclose(library_);
  }
  HostLibrary(const HostLibrary&) = delete;

  const std::string& why() const { return why_; }
  // Null if there is no such kernel.
  using Entry = void (*)(const void* argument, unsigned blocks, unsigned threads);
  Entry kernel(const std::string& name) const {
    return reinterpret_cast<Entry>(::dlsym(library_, (name + "_on_host").c_str()));
  }
  int misaligned_accesses() const { return *static_cast<int*>(::dlsym(library_, "misaligned_accesses")); }

 private:
  TemporaryFolder folder_;
  void* library_ = nullptr;
  std::string why_;
};

// Runs every kernel of the cases, with as many threads as a launch has and with seven, and compares the results.
inline void check_on_host(std::vector<FusedCase>& cases) {
  std::vector<codegen::FusedSource> sources;
  for (const FusedCase& c : cases) sources.push_back(codegen::fused_source(c.region, c.layout, c.name));
  const HostLibrary library(codegen::complete_text(sources));
  if (!library.why().empty()) GTEST_SKIP() << library.why();
  for (FusedCase& c : cases) {
    KernelFault fault;
    codegen::FusedLaunch launch;
    codegen::fill_launch(c.layout, c.call(&fault), &launch);
    EXPECT_EQ(launch.wide, c.layout.lanes > 1) << "the operands are aligned";
    for (const char* kind : {"_plain", "_wide"}) {
      const HostLibrary::Entry kernel = library.kernel(c.name + kind);
      ASSERT_EQ(kernel != nullptr, kind == std::string("_plain") || c.layout.lanes > 1) << c.name << kind;
      if (!kernel) continue;
      for (const bool few : {false, true}) {
        c.forget_results();
        kernel(launch.words, few ? 1 : (static_cast<unsigned>(c.layout.n) + 255) / 256, few ? 7 : 256);
        c.expect_results(c.name + kind);
      }
    }
  }
  EXPECT_EQ(library.misaligned_accesses(), 0);
}

}  // namespace tapedeck::test
