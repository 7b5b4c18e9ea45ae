// The list of hand-written programs. Each is small and exercises one feature. Each corpus_*.cpp file holds the programs of
// one theme; a PROGRAM block adds its program to the list before main().
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
std::vector<Entry>& corpus();  // sorted by name after all programs have registered

struct Registration {
  Registration(const char* name, void (*build)(Program&)) { corpus().push_back({name, build}); }
};

#define PROGRAM(program_name)                                                                 \
  static void build_##program_name(Program& p);                                               \
  static const Registration registration_##program_name{#program_name, build_##program_name}; \
  static void build_##program_name([[maybe_unused]] Program& p)

}  // namespace tapedeck::agree
