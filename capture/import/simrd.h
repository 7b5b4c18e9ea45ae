// Traces of eager programs as the simulator of DTR reads them (simrd): a JSON object a line, one for each event of a training
// step in PyTorch.
//
//     CONSTANT NAME, then MEMORY NAME MEMORY       a weight or an input, and its bytes
//     CALL NAME ARGS RESULT[] TIME, then for each result MEMORY NAME MEMORY and ALIAS NAME ALIAS
//                                                  an op of TIME nanoseconds; ALIAS is -1, or the argument that the result
//                                                  views
//     MUTATE NAME ARGS MUTATE[] TIME               an op that writes the arguments of these numbers in place
//     COPY DST SRC, COPY_FROM DST SRC              a further name; a name that now stands for another tensor
//     RELEASE NAME                                 the program lets go of a name
//     ANNOTATE ANNOTATION                          START: the trace begins here; BACKWARD: the backward pass does
//
// The trace is read by storages. A result that views an argument is the storage of the argument, so a view makes no value and
// no node. A call that makes only views is no node either: its time is added to the node that made the bytes, and for a
// constant to the next node that reads it. MUTATE makes a new value of the storage, which all names of the storage stand for
// from then on. All other calls become `opaque` nodes, with the name of the op as module path. Phases: backward from the
// annotation on, or from the first op whose name has "backward" in it. Constants are inputs. A constant that the trace writes
// and still holds at its end is a parameter with an update. The other values that have a name at the end are the results of the
// graph.
#pragma once

#include <tapedeck/capture/import/imported_results.h>
#include <tapedeck/engine/ir/graph.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace tapedeck TAPEDECK_API {

struct ImportedTrace {
  Graph graph;
  // As the traced program held them: a storage counts from its call until its last name is released. The plan of the graph may
  // hold less, because it frees a value after its last reader, or more, because inputs count from start to end and a mutation
  // is computed beside the bytes that it writes.
  std::int64_t held_peak_bytes = 0;
  std::int64_t held_end_bytes = 0;
  std::int64_t constant_bytes = 0;
  std::int64_t calls = 0, views = 0, mutations = 0;  // lines: CALL, those that make only views, MUTATE
  double microseconds = 0;                           // of all calls, views included
};

// The text may be anything. Throws ParseError, "FILE:LINE: error: REASON", for the first line that is no JSON object, lacks
// something, has a number out of bounds, or uses a name that is unknown, released, or defined already; and for a text that ends
// in the middle of a call or calls no op. A RELEASE of a name that the trace never defines is ignored, as simrd does. Time and
// memory are linear in the text.
ImportedTrace import_simrd(std::string_view text, const std::string& file = "<trace>",
                           ImportedResults results = ImportedResults::held);

}  // namespace TAPEDECK_API
