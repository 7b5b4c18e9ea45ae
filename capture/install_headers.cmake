# Installs the headers of the package: those listed here, and the headers that they include. Nothing else is installed.
# `cmake --install` runs this script; SOURCE is the source tree, INCLUDE the folder of the package's headers.
# tests/install compiles every installed header by itself.

cmake_minimum_required(VERSION 3.25)

# Users include one header.
set(listed capture/tapedeck.h)

# Programs that ask what the tool `tapedeck` is asked: a graph as text, settings, the checker of plans, pictures and lists of memory, traces.
list(APPEND listed
  engine/text/text.h engine/eager/settings.h
  capture/check/check_plan.h
  capture/explain/explain_memory.h capture/explain/memory_svg.h capture/explain/plan_csv.h
  capture/explain/chrome_trace.h capture/explain/memory_snapshot.h
  capture/explain/compare_graphs.h capture/explain/compare_plans.h capture/explain/export_graph.h capture/explain/wish_costs.h capture/explain/value_log.h capture/explain/value_prices.h
  capture/replay/eager_difference.h capture/replay/tensor_difference.h)

# Programs that plan graphs and traces of other programs.
list(APPEND listed capture/import/graph_json.h capture/import/simrd.h capture/onnx/import_onnx.h capture/onnx/export_onnx.h)

# Programs that save where a thread stands in its random stream, without save_state().
list(APPEND listed engine/eager/random_position.h)

# Programs that ask whether gradients are new.
list(APPEND listed engine/gradient/fresh_gradient.h)

# Programs that plan one graph for many budgets.
list(APPEND listed
  capture/planner/plan_search.h capture/planner/search_beside.h capture/planner/tradeoff.h capture/planner/largest_batch.h
  capture/explain/tradeoff_svg.h)

# Programs that place buffers of their own, without a graph.
list(APPEND listed capture/planner/place/place.h)

# Programs that spread a graph over devices, or hand parts of it to another backend.
list(APPEND listed engine/ops/device.h capture/analysis/reach.h capture/replay/partition.h)

# Authors of ops: the block of an op, its inference and its gradient; its kernel and its attributes; the library that brings it.
list(APPEND listed
  engine/ir/op.h engine/ir/infer.h engine/eager/vjp.h
  kernels/kernel.h kernels/attrs.h kernels/scalar.h kernels/philox.h
  engine/ir/load_op_library.h)

# Authors of passes: a pass registers itself by name, and may call the others.
list(APPEND listed engine/ir/graph.h capture/passes/registry.h capture/passes/passes.h)

# Programs that ask in what a step differs from its capture.
list(APPEND listed capture/record/capture_mismatch.h)

# Programs that watch the inputs of nodes during a replay, or look at values.
list(APPEND listed capture/replay/monitor_inputs.h capture/replay/tensor_statistics.h)

# Authors of models: a model that is registered can be recorded by name.
list(APPEND listed capture/record/model_registry.h)

set(seen "")
while(listed)
  list(POP_FRONT listed header)
  if(header IN_LIST seen)
    continue()
  endif()
  list(APPEND seen ${header})
  cmake_path(GET header PARENT_PATH folder)
  if(header STREQUAL "capture/tapedeck.h")
    set(folder "")
  endif()
  file(INSTALL ${SOURCE}/${header} DESTINATION ${INCLUDE}/tapedeck/${folder})
  file(STRINGS ${SOURCE}/${header} lines REGEX "^[ \t]*#[ \t]*include[ \t]*<tapedeck/")
  list(TRANSFORM lines REPLACE ".*<tapedeck/([^>]+)>.*" "\\1")
  list(APPEND listed ${lines})
endwhile()
