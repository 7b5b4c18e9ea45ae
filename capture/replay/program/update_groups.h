// Joins the updates of a training step into launches of many tensors. A step has an update for each parameter, and a launch
// costs a device more than a small update:
//
//     sgd(a), matmul, sgd(b), sgd(c)        matmul, sgd(a, b, c)
//
// An update moves down to the last one of its group. It may pass an instruction only if neither writes bytes that the other
// reads or writes, and so may the updates of a group among themselves. Memory is used again within a step, so bytes decide, not
// values. An instruction that runs on the host ends all groups.
#pragma once

#include <tapedeck/capture/replay/program/program.h>

namespace tapedeck::replay {

// Changes a program for a device whose calls are not yet bound to their views. Instructions keep their segments, but for those
// that move down to another.
void join_updates(const Graph& g, Program& program);

}  // namespace tapedeck::replay
