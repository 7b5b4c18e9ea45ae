// Functions that write first values into tensors, under the names that PyTorch gives them (with its defaults):
//
//     xavier_uniform_(net.fc.weight)                                    gain 1
//     kaiming_normal_(net.conv.weight, {.mode = Fan::out, .nonlinearity = Nonlinearity::relu})
//     orthogonal_(net.rnn.weights[0].weight_hh)                         gain 1
//     truncated_normal_(net.positions, 0, 0.02, -0.04, 0.04)            defaults 0, 1, -2, 2
//
// The values are drawn from the stream of the tensor's name. So they follow from manual_seed() and the name, and do not depend
// on the order in which other tensors are filled; a second call in the same random step draws other values. The tensor is
// written without gradient history, and keeps its dtype; values are drawn in f32, or in f64 for f64 tensors. Each function
// returns the tensor. Throws TypeError for integer and undefined tensors. O(elements), except orthogonal_.
//
// fan_in is the number of inputs that one output sums, and fan_out the number of outputs that one input reaches:
//
//     weight                                fan_in             fan_out
//     [in,out]            (Linear, LSTM)    in                 out                 PyTorch's [out,in] gives the same numbers
//     [out,in,k...]       (Conv)            in * k             out * k             as PyTorch
//     [in,out,k...]       (ConvTranspose)   out * k            in * k              as PyTorch, which looks at the shape alone
#pragma once

#include <tapedeck/engine/eager/tensor.h>
#include <tapedeck/kernels/export.h>

#include <cstdint>

namespace tapedeck TAPEDECK_API {

enum class Fan : std::uint8_t { in, out };
enum class Nonlinearity : std::uint8_t { linear, sigmoid, tanh, relu, leaky_relu, selu };

// The gain that keeps the deviation of values through a layer with this nonlinearity: 1, 1, 5/3, sqrt(2),
// sqrt(2 / (1 + slope^2)), 3/4. Only leaky_relu uses the slope.
double gain_of(Nonlinearity nonlinearity, double slope = 0.01);

struct Fans {
  std::int64_t in = 0, out = 0;
};
Fans fans_of(const Shape& weight);  // TypeError if the weight has fewer than two dimensions

// Glorot and Bengio, 2010: uniform in +-gain sqrt(6 / (fan_in + fan_out)), or normal with deviation
// gain sqrt(2 / (fan_in + fan_out)).
Tensor xavier_uniform_(const Arg& weight, double gain = 1);
Tensor xavier_normal_(const Arg& weight, double gain = 1);

// He et al., 2015: uniform in +-gain sqrt(3 / fan), or normal with deviation gain / sqrt(fan), where gain is
// gain_of(nonlinearity, slope). The defaults give gain sqrt(2).
struct KaimingOptions {
  Fan mode = Fan::in;
  Nonlinearity nonlinearity = Nonlinearity::leaky_relu;
  double slope = 0;
};
Tensor kaiming_uniform_(const Arg& weight, KaimingOptions options = {});
Tensor kaiming_normal_(const Arg& weight, KaimingOptions options = {});

// Saxe et al., 2013: the weight as a matrix [first dimension, all others] gets orthonormal rows or columns, whichever are
// fewer, times gain. Reads its draws on the host, so it throws CaptureError inside a capture. O(elements min(rows, columns)).
Tensor orthogonal_(const Arg& weight, double gain = 1);

// Normal with this mean and deviation, drawn again outside [low, high]. TypeError if deviation is not above 0, or low not below
// high.
Tensor truncated_normal_(const Arg& weight, double mean = 0, double deviation = 1, double low = -2, double high = 2);

}  // namespace TAPEDECK_API
