// Sorts the initializers of a model into parameters and numbers that belong to its formulas.
#pragma once

#include <tapedeck/capture/onnx/onnx_model.h>
#include <tapedeck/engine/ir/graph.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace tapedeck::onnx {

// `patterns` with *, or empty: then an initializer is a parameter if it is floating, some node reads it where it could be
// learned, all its elements are finite, and it is no number of a formula. Exporters give such numbers names of their own
// ("val_7", "onnx::Add_3"): those are parameters only if they have several elements that are not all equal. The running
// statistics of batch norms are statistics. A model that Tapedeck wrote says itself what is state (EXPORT.md), and
// without patterns that holds. By name; the role of a constant is none; graphs inside nodes count, too. Throws UsageError for a
// pattern that matches nothing, or that matches integers.
std::unordered_map<std::string, Role> choose_parameters(const Model& model, const std::vector<std::string>& patterns);

// Initializers of several elements that are all equal, and that more than one node reads where it could be learned. PyTorch's
// exporter joins weights of equal values, as those of a model that nobody trained yet.
std::vector<std::string> joined_initializers(const Model& model);

}  // namespace tapedeck::onnx
