// A name is looked up in three ways, the first that knows it wins:
//
//     module.fc.weight               a prefix that a wrapper of the whole net leaves in every name
//     rnn.weight_ih_l1_reverse       an option that the layer of this path was made without here
//     fc.parametrizations....        names that mean the same for every layer
#include <tapedeck/capture/file/pytorch_notes.h>

#include <tapedeck/engine/nn/nn.h>

#include <fmt/format.h>

#include <charconv>
#include <string_view>

namespace tapedeck {

namespace {

// ---- the layer of a name ----

struct OwnName {
  const Module* layer;    // the innermost module whose path the name begins with
  std::string_view name;  // the rest, "bias"
};

OwnName own_name(const Module& net, std::string_view name) {
  const auto begins_with = [name](const Module* m) {
    return name.starts_with(m->path()) && name.substr(m->path().size()).starts_with('.');
  };
  const Module* at = &net;
  for (bool moved = true; moved;) {
    moved = false;
    for (const Module* child : at->children())
      if (begins_with(child)) at = child, moved = true;
  }
  if (at->path().empty()) return {at, name};
  return {at, name.starts_with(at->path() + ".") ? name.substr(at->path().size() + 1) : name};
}

template <class... Layers>
bool points_to_any_of(const Module* m) {
  return ((dynamic_cast<const Layers*>(m) != nullptr) || ...);
}

bool is_convolution(const Module* m) {
  return points_to_any_of<Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d>(m);
}

// ---- names that mean the same for every layer ----

struct Meaning {
  std::string_view own;  // a name of this form: all of it, or its beginning if it ends in *
  const char* text;
};

constexpr Meaning kMeanings[] = {
    {"num_batches_tracked", "the number of batches that a BatchNorm has seen; no layer of this path is a BatchNorm here"},
    {"running_mean", "running statistics, which only a BatchNorm has here, and no layer of this path is one"},
    {"running_var", "running statistics, which only a BatchNorm has here, and no layer of this path is one"},
    {"weight_g", "the length of a weight under weight_norm; call remove_weight_norm() in PyTorch before saving"},
    {"weight_v",
     "a part of a weight under weight_norm or spectral_norm; call remove_weight_norm() or remove_spectral_norm() in PyTorch "
     "before saving"},
    {"weight_u", "a vector of spectral_norm; call remove_spectral_norm() in PyTorch before saving"},
    {"weight_orig",
     "a weight before spectral_norm or pruning; call remove_spectral_norm() or prune.remove() in PyTorch before saving"},
    {"weight_mask", "the mask of a pruned weight; call prune.remove() in PyTorch before saving"},
    {"bias_mask", "the mask of a pruned bias; call prune.remove() in PyTorch before saving"},
    {"parametrizations.*",
     "a part of a parametrized weight, such as weight_norm; call parametrize.remove_parametrizations() in PyTorch before "
     "saving"},
    {"weight_hr_l*", "the projection of an LSTM with proj_size, which no recurrent layer has here"},
    {"bias_k", "the learned key of an attention with add_bias_kv, which MultiheadAttention does not have here"},
    {"bias_v", "the learned value of an attention with add_bias_kv, which MultiheadAttention does not have here"},
    {"q_proj_weight", "of an attention with kdim or vdim; here queries, keys and values have one size, and one in_proj_weight"},
    {"k_proj_weight", "of an attention with kdim or vdim; here queries, keys and values have one size, and one in_proj_weight"},
    {"v_proj_weight", "of an attention with kdim or vdim; here queries, keys and values have one size, and one in_proj_weight"},
    {"position_ids", "the numbers 0, 1, 2, ..., which are no weight and can be left out"},
    {"inv_freq", "the frequencies of rotary positions, which are no weight and can be left out"},
};

// Also for modules that the net does not have, so the name may have a path in front.
bool has_form(std::string_view name, std::string_view form) {
  const bool is_beginning = form.ends_with('*');
  if (is_beginning) form.remove_suffix(1);
  for (std::size_t at = name.find(form); at != name.npos; at = name.find(form, at + 1)) {
    const bool begins = at == 0 || name[at - 1] == '.';
    if (begins && (is_beginning || at + form.size() == name.size())) return true;
  }
  return false;
}

std::string meaning_of(std::string_view own) {
  for (const Meaning& m : kMeanings)
    if (has_form(own, m.own)) return m.text;
  return "";
}

// ---- options that a layer was made without ----

// The number behind "_l": of "weight_ih_l12_reverse" 12; -1 if there is none.
int layer_number(std::string_view own) {
  const std::size_t at = own.find("_l");
  int number = -1;
  if (at != own.npos) std::from_chars(own.data() + at + 2, own.data() + own.size(), number);
  return number;
}

std::string about_recurrent(const RecurrentLayers& layer, std::string_view own) {
  if (!own.starts_with("weight_ih_l") && !own.starts_with("weight_hh_l") && !own.starts_with("bias_ih_l") &&
      !own.starts_with("bias_hh_l"))
    return "";
  if (layer_number(own) >= layer.options.layers)
    return fmt::format("of layer {} of PyTorch's, counted from 0; this one was made with .layers = {}", layer_number(own),
                       layer.options.layers);
  if (own.ends_with("_reverse") && !layer.options.bidirectional)
    return "of the reverse direction; this layer was made without .bidirectional = true";
  return "";
}

std::string about_layer(const Module* layer, std::string_view own) {
  if (const auto* recurrent = dynamic_cast<const RecurrentLayers*>(layer)) return about_recurrent(*recurrent, own);
  if (points_to_any_of<Linear>(layer) || is_convolution(layer))
    return own == "bias" ? "this layer was made with .bias = false here" : "";
  if (points_to_any_of<MultiheadAttention>(layer))
    return own == "in_proj_bias" || own == "out_proj.bias" ? "this attention was made with .bias = false here" : "";
  if (points_to_any_of<BatchNorm>(layer))
    return own == "weight" || own == "bias" ? "this BatchNorm was made with .affine = false here" : "";
  if (points_to_any_of<RmsNorm>(layer))
    return own == "bias" ? "an RmsNorm has no bias; the file seems to have a LayerNorm" : "";
  if (points_to_any_of<Embedding>(layer)) return own == "bias" ? "an Embedding has no bias" : "";
  return "";
}

// ---- prefixes ----

std::string about_prefix(const Module& net, std::string_view name) {
  for (const auto& [prefix, wrapper] : {std::pair{"module.", "DataParallel"}, std::pair{"_orig_mod.", "torch.compile"}}) {
    const std::string_view first(prefix);
    if (!name.starts_with(first) || own_name(net, name).layer != &net) continue;
    if (own_name(net, name.substr(first.size())).layer == &net) continue;
    return fmt::format("{} leaves the prefix {} in every name; take it away with the function of names", wrapper, prefix);
  }
  return "";
}

}  // namespace

std::string note_on_unexpected(const Module& net, const std::string& name) {
  if (std::string note = about_prefix(net, name); !note.empty()) return note;
  const OwnName own = own_name(net, name);
  if (std::string note = about_layer(own.layer, own.name); !note.empty()) return note;
  return meaning_of(own.name);
}

std::string note_on_missing(const Module& net, const std::string& name) {
  const OwnName own = own_name(net, name);
  if (points_to_any_of<RecurrentModule>(own.layer))
    return own.name.starts_with("bias_")
               ? "PyTorch's layer has bias=False; here both biases are always there, and zeros do the same: load with "
                 ".strict = false"
               : "";
  if (own.name != "bias" && own.name != "in_proj_bias" && own.name != "out_proj.bias") return "";
  if (points_to_any_of<Linear, MultiheadAttention>(own.layer) || is_convolution(own.layer))
    return "PyTorch's layer has bias=False; make this one with .bias = false";
  if (points_to_any_of<LayerNorm>(own.layer))
    return "PyTorch's LayerNorm has bias=False; here the bias is always there, and zeros do the same: load with .strict = "
           "false";
  return "";
}

}  // namespace tapedeck
