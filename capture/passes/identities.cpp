#include <tapedeck/capture/passes/identities.h>

namespace tapedeck {

namespace {

// x + 0 is not in the list, because -0 + 0 is 0. x * 0 is not in the list, because of NaN, infinities and -0.
constexpr Identity kExact[] = {
    {Numbers::arithmetic, "mul(x, 1)", "x"},
    {Numbers::arithmetic, "mul(1, x)", "x"},
    {Numbers::arithmetic, "div(x, 1)", "x"},
    {Numbers::arithmetic, "sub(x, 0)", "x"},
    {Numbers::floating, "add(x, -0)", "x"},
    {Numbers::floating, "add(-0, x)", "x"},
    {Numbers::arithmetic, "neg(neg(x))", "x"},
    {Numbers::arithmetic, "abs(abs(x))", "abs(x)"},
    {Numbers::floating, "abs(neg(x))", "abs(x)"},  // for u8, -1 is 255
    {Numbers::arithmetic, "relu(relu(x))", "relu(x)"},
    {Numbers::arithmetic, "sign(sign(x))", "sign(x)"},
    {Numbers::arithmetic, "maximum(x, x)", "x"},
    {Numbers::arithmetic, "minimum(x, x)", "x"},
    {Numbers::arithmetic, "floor(floor(x))", "floor(x)"},
    {Numbers::arithmetic, "ceil(ceil(x))", "ceil(x)"},
    {Numbers::arithmetic, "round(round(x))", "round(x)"},
    {Numbers::arithmetic, "trunc(trunc(x))", "trunc(x)"},
    {Numbers::whole, "add(x, 0)", "x"},
    {Numbers::whole, "add(0, x)", "x"},
    {Numbers::whole, "sub(x, x)", "0"},
    {Numbers::whole, "mul(x, 0)", "0"},
    {Numbers::whole, "mul(0, x)", "0"},
    {Numbers::whole, "bitwise_not(bitwise_not(x))", "x"},
    {Numbers::whole, "bitwise_and(x, x)", "x"},
    {Numbers::whole, "bitwise_or(x, x)", "x"},
    {Numbers::whole, "bitwise_xor(x, x)", "0"},
    {Numbers::boolean, "logical_not(logical_not(x))", "x"},
    {Numbers::boolean, "logical_and(x, x)", "x"},
    {Numbers::boolean, "logical_or(x, x)", "x"},
    {Numbers::boolean, "logical_and(x, 1)", "x"},
    {Numbers::boolean, "logical_and(1, x)", "x"},
    {Numbers::boolean, "logical_or(x, 0)", "x"},
    {Numbers::boolean, "logical_or(0, x)", "x"},
    {Numbers::boolean, "logical_xor(x, x)", "0"},
    {Numbers::any, "where(t, x, x)", "x"},
    {Numbers::any, "where(1, x, y)", "x"},
    {Numbers::any, "where(0, y, x)", "x"},
    {Numbers::any, "less(x, x)", "0"},
    {Numbers::any, "greater(x, x)", "0"},
    {Numbers::whole, "equal(x, x)", "1"},
};

constexpr Identity kFast[] = {
    {Numbers::floating, "add(x, 0)", "x"},
    {Numbers::floating, "add(0, x)", "x"},
    {Numbers::floating, "sub(0, x)", "neg(x)"},
    {Numbers::floating, "mul(x, 0)", "0"},
    {Numbers::floating, "mul(0, x)", "0"},
    {Numbers::floating, "sub(x, x)", "0"},
    {Numbers::floating, "div(x, x)", "1"},
    {Numbers::floating, "div(1, x)", "reciprocal(x)"},
    {Numbers::floating, "log(exp(x))", "x"},
    {Numbers::floating, "exp(log(x))", "x"},
    {Numbers::floating, "square(sqrt(x))", "x"},
    {Numbers::floating, "sqrt(square(x))", "abs(x)"},
    {Numbers::floating, "square(neg(x))", "square(x)"},
    {Numbers::floating, "square(abs(x))", "square(x)"},
    {Numbers::floating, "pow(x, 1)", "x"},
    {Numbers::floating, "pow(x, 2)", "square(x)"},
    {Numbers::floating, "pow(x, 0.5)", "sqrt(x)"},
    {Numbers::floating, "reciprocal(sqrt(x))", "rsqrt(x)"},
    {Numbers::floating, "div(y, sqrt(x))", "mul(y, rsqrt(x))"},
    {Numbers::floating, "add(x, neg(y))", "sub(x, y)"},
    {Numbers::floating, "add(neg(y), x)", "sub(x, y)"},
    {Numbers::floating, "sub(x, neg(y))", "add(x, y)"},
    {Numbers::floating, "neg(sub(x, y))", "sub(y, x)"},
    {Numbers::floating, "mul(neg(x), neg(y))", "mul(x, y)"},
    {Numbers::floating, "div(neg(x), neg(y))", "div(x, y)"},
    {Numbers::floating, "mul(exp(x), exp(y))", "exp(add(x, y))"},
    {Numbers::floating, "log(add(exp(x), exp(y)))", "logaddexp(x, y)"},
    {Numbers::floating, "log(softmax(x))", "log_softmax(x)"},
    {Numbers::floating, "nll_loss(log_softmax{axis=1}(x), y)", "cross_entropy(x, y)"},
    // Known numbers gather on the right, where constant_folding makes one number of them.
    {Numbers::floating, "add(add(x, k), l)", "add(x, add(k, l))"},
    {Numbers::floating, "add(l, add(x, k))", "add(x, add(k, l))"},
    {Numbers::floating, "add(add(k, x), l)", "add(x, add(k, l))"},
    {Numbers::floating, "add(l, add(k, x))", "add(x, add(k, l))"},
    {Numbers::floating, "mul(mul(x, k), l)", "mul(x, mul(k, l))"},
    {Numbers::floating, "mul(l, mul(x, k))", "mul(x, mul(k, l))"},
    {Numbers::floating, "mul(mul(k, x), l)", "mul(x, mul(k, l))"},
    {Numbers::floating, "mul(l, mul(k, x))", "mul(x, mul(k, l))"},
};

}  // namespace

std::span<const Identity> exact_identities() { return kExact; }
std::span<const Identity> fast_identities() { return kFast; }

}  // namespace tapedeck
