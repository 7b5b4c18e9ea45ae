// The memory plan as CSV: a line for each rectangle of the picture.
#pragma once

#include <tapedeck/viewer/plan/plan_model.h>

#include <string>

namespace tapedeck::viewer {

// A line of keys, then a line for each rectangle, in the order of PlanModel::rects(). A rectangle lies in the bytes
// [address, address + bytes) of the axis of the picture during the nodes [birth, death). A workspace has no value, and external
// bytes have no node. The bytes of the lines that are alive at a node sum to live_bytes() there, but external bytes that two
// values share have a line for each.
std::string memory_csv(const PlanModel& model);

}  // namespace tapedeck::viewer
