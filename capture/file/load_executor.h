// Executors of captured steps that were saved as .tape files.
#pragma once

#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/plan/plan_options.h>
#include <tapedeck/capture/replay/executor.h>
#include <tapedeck/kernels/export.h>

#include <string>

namespace tapedeck TAPEDECK_API {

// An executor whose inputs and state have the values of the file, so that it can run at once:
//     Executor step = load_executor("step.tape");
//     step.run();
// It runs the plan of the file, or a plan made with default options if the file has none. With `plan` it runs a plan made with
// these options, whether the file has one or not. State is bound to the tensors of the file, so its bytes are held once. Values
// that the file lacks have to be set before run(), which names them. Throws what load_tape(), make_plan() and Executor throw:
// FileError, ParseError, InvalidGraphError, UsageError, and InfeasibleError if the plan does not fit its budget.
Executor load_executor(const std::string& path, const ExecutorOptions& options = {});
Executor load_executor(const std::string& path, const PlanOptions& plan, const ExecutorOptions& options = {});

// The same, for a file that has been read already.
Executor make_executor(TapeFile file, const ExecutorOptions& options = {});

}  // namespace TAPEDECK_API
