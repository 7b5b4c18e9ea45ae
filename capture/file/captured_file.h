// A capture, or a captured step, as a .tape file.
#pragma once

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/record/capture.h>
#include <tapedeck/kernels/export.h>

#include <map>
#include <string>

namespace tapedeck TAPEDECK_API {

class CapturedStep;

// The contents of a file of the capture: its graph, and the tensors of its inputs and its state. The tensors are those of the
// author, not copies, so save_tape() writes the bytes that they hold when it is called. Abstract tensors have no bytes and are
// left out.
TapeFile tape_of(const Captured& captured, const std::map<std::string, std::string>& metadata = {});

// save_tape() of these contents, and of a plan of the captured graph. Throws what save_tape(path, TapeFile) throws: FileError,
// and UsageError if the plan belongs to another graph or the graph calls a function of this process (on_host).
void save_tape(const std::string& path, const Captured& captured, const std::map<std::string, std::string>& metadata = {});
void save_tape(const std::string& path, const Captured& captured, const Plan& plan,
               const std::map<std::string, std::string>& metadata = {});

// The same for the program of a step that ran last, with the plan of the step (CapturedStep::save) or with another plan of its
// graph. UsageError if nothing was recorded yet.
void save_tape(const std::string& path, const CapturedStep& step, const std::map<std::string, std::string>& metadata = {});
void save_tape(const std::string& path, const CapturedStep& step, const Plan& plan,
               const std::map<std::string, std::string>& metadata = {});

}  // namespace TAPEDECK_API
