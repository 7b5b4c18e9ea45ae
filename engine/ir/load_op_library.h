// Ops from outside. An op library is a shared library with op blocks and their kernels, which is loaded while the program
// runs.
//
//       const tapedeck::Op cube{.name = "acme.cube", .doc = "x * x * x", .traits = tapedeck::kElementwise, ...,
//                               .kernels = {cube_kernel}};
//       extern "C" void tapedeck_register_ops() { tapedeck::register_op(cube); }
//
// The library links to libtapedeck.so and so shares the one registry. Its ops are recorded, printed, planned, replayed and
// differentiated like the built-in ops. A dot in the name keeps it apart from the names of future built-in ops. The library
// stays loaded as long as the process runs.
#pragma once

#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

// Loads the shared library `path` and calls its tapedeck_register_ops(). A library that is already loaded is not loaded
// again. Throws FileError if the library cannot be loaded or lacks that function. Passes on the errors of register_op. Thread
// safe.
void load_ops(const std::string& path);

}  // namespace TAPEDECK_API
