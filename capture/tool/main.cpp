// tapedeck: record, show, plan, replay and verify captured training steps from a shell. Every command registers itself; see
// capture/tool/line/command.h.
#include <tapedeck/capture/tool/files/terminal.h>
#include <tapedeck/capture/tool/line/parse.h>

#include <tapedeck/engine/ir/error.h>
#include <tapedeck/engine/ir/load_op_library.h>

#include <cstdio>
#include <new>

using namespace tapedeck;
using namespace tapedeck::tool;

namespace {

int complain(const std::exception& e, int code) {
  std::fprintf(stderr, "tapedeck: %s\n", e.what());
  return code;
}

int run(int argc, char** argv) {
  const Parsed parsed = parse_line(argc, argv);
  if (!parsed.command) return std::fputs(parsed.text.c_str(), stdout) < 0 ? kExecution : kOk;
  catch_interrupts();
  for (const std::string& library : program().op_libraries) load_ops(library);
  return parsed.command->run();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const Cancelled&) {
    std::fprintf(stderr, "tapedeck: interrupted\n");
    return kInterrupted;
  } catch (const UsageError& e) {
    return complain(e, kUsage);
  } catch (const TypeError& e) {
    return complain(e, kUsage);
  } catch (const DeviceError& e) {
    return complain(e, kNoDevice);
  } catch (const ExecutionError& e) {
    return complain(e, kExecution);
  } catch (const CaptureError& e) {
    return complain(e, kExecution);
  } catch (const Error& e) {
    return complain(e, kBadFile);
  } catch (const std::bad_alloc&) {
    return complain(ExecutionError("out of memory"), kExecution);
  } catch (const std::exception& e) {
    return complain(e, kExecution);
  }
}
