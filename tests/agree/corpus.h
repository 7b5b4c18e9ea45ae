// The hand-written programs: small, each teaches one thing. A file groups them by theme; each registers itself.
#pragma once

#include <tapedeck/tests/agree/program.h>

#include <tapedeck/engine/eager/inplace.h>
#include <tapedeck/engine/eager/tape.h>
#include <tapedeck/engine/gradient/gradients.h>
#include <tapedeck/engine/nn/nn.h>
#include <tapedeck/engine/ops/ops.h>

#include <string>
#include <vector>

namespace tapedeck::agree {

struct Entry {
  std::string name;
  Builder build;
};
std::vector<Entry>& corpus();  // sorted by name once all have registered

struct Registration {
  Registration(const char* name, void (*build)(Program&)) { corpus().push_back({name, build}); }
};

#define PROGRAM(program_name)                                                                 \
  static void build_##program_name(Program& p);                                               \
  static const Registration registration_##program_name{#program_name, build_##program_name}; \
  static void build_##program_name([[maybe_unused]] Program& p)

}  // namespace tapedeck::agree
