// Draws a plan: .svg with the code of this library, .png by a process of the viewer that runs without a window.
#include <tapedeck/capture/tool/files/child.h>
#include <tapedeck/capture/tool/files/picture.h>
#include <tapedeck/capture/tool/files/temporary_folder.h>
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/line/command.h>

#include <tapedeck/capture/explain/memory_svg.h>
#include <tapedeck/capture/file/file.h>
#include <tapedeck/capture/formats/atomic_write.h>
#include <tapedeck/engine/ir/error.h>

#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace tapedeck::tool {

namespace {

// Runs the viewer unattended; its output goes to stderr.
void shoot(const std::string& viewer, const std::string& tape, const std::string& picture) {
  const ChildEnd end =
      run_child({viewer, tape, "--panel", "memory", "--shot", picture}, {.environment = {}, .stdout_to_stderr = true});
  if (end.error) throw ExecutionError(fmt::format("{}: {}", viewer, std::strerror(end.error)));
  if (end.signal != 0 || (end.code != kOk && end.code != kInfeasible))
    throw ExecutionError(
        fmt::format("{} could not draw {}: it ended with {}", viewer, picture,
                    end.signal != 0 ? fmt::format("signal {}", end.signal) : fmt::format("exit code {}", end.code)));
}

}  // namespace

std::string viewer_program() {
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  std::string viewer = (self.parent_path() / "tapedeck-viewer").string();
  if (access(viewer.c_str(), X_OK) != 0)
    throw DeviceError("there is no tapedeck-viewer beside this tool: the build found no Qt 6 or no Dear ImGui");
  return viewer;
}

void check_picture(const std::string& path) {
  if (path.ends_with(".svg")) return;
  if (!path.ends_with(".png"))
    throw UsageError(fmt::format("--picture {}: the name of a picture must end in .svg or .png", path));
  try {
    viewer_program();
  } catch (const DeviceError& e) {
    throw DeviceError(fmt::format("--picture {}: a .png is drawn by the viewer, and {}; an .svg needs none", path, e.what()));
  }
}

void write_picture(const std::string& path, const Graph& captured, const Plan& plan) {
  if (path.ends_with(".svg")) {
    AtomicWriter out(path);
    out.write(memory_svg(plan));
    return out.commit();
  }
  if (!plan.feasible) {
    std::fprintf(stderr, "tapedeck: --picture %s: not drawn; a plan that does not fit its budget can be drawn as .svg only\n",
                 path.c_str());
    return;
  }
  const TemporaryFolder folder(std::filesystem::temp_directory_path() / "tapedeck-picture-");
  TapeFile file;
  file.captured = captured;
  file.plan = plan;
  save_tape(folder.file("plan.tape"), file);
  shoot(viewer_program(), folder.file("plan.tape"), path);
}

}  // namespace tapedeck::tool
