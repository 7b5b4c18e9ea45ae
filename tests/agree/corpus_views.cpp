// Hand-written programs with views and with writes through views. Some values are read again later, some twice, some never.
#include <tapedeck/tests/agree/corpus.h>

namespace tapedeck::agree {

PROGRAM(views_of_views) {
  p.input({4, 6});
  const Tensor w = p.parameter("w", {6, 4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor rows = slice(in[0], 0, 1, 4), columns = slice(transpose(w, {1, 0}), 1, 0, 5, 2);
        return {mean(matmul(transpose(reshape(slice_along(rows, 1, 0, 4), {4, 3}), {1, 0}), columns))};
      },
      {w});
}

PROGRAM(write_through_a_slice) {
  p.input({4, 6});
  const Tensor w = p.parameter("w", {4, 6});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w;
        const Tensor top = slice(x, 0, 0, 2);
        add_(top, 1);
        mul_(slice(x, 1, 1, 3), 0.5);
        return {mean(slice(tanh(x), 0, 0, 2) * tanh(top)), x, top};
      },
      {w});
}

PROGRAM(write_through_a_transpose) {
  p.input({3, 5});
  const Tensor w = p.parameter("w", {5});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * 2;
        const Tensor t = transpose_last(x);
        copy_(slice(t, 0, 1, 3), unsqueeze(slice(w, 0, 0, 2), 1));
        return {sum(sin(x)), t};
      },
      {w});
}

PROGRAM(write_to_a_diagonal) {
  p.input({4, 4});
  const Tensor w = p.parameter("w", {4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * 1;
        add_(diagonal(x), w);
        return {sum(square(x)), diagonal(x, 1)};
      },
      {w});
}

PROGRAM(write_the_base_read_the_view) {
  p.input({6});
  const Tensor w = p.parameter("w", {6});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] + w;
        const Tensor halves = reshape(x, {2, 3});
        mul_(x, 3);
        return {sum(square(halves)), halves};
      },
      {w});
}

PROGRAM(overlapping_windows) {
  p.input({8});
  const Tensor w = p.parameter("w", {8});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = w * in[0];
        const Tensor a = slice(x, 0, 0, 5), b = slice(x, 0, 3, 8);
        return {sum(a * b) + sum(x), a};
      },
      {w});
}

PROGRAM(in_place_chain) {
  p.input({3, 4});
  const Tensor w = p.parameter("w", {3, 4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] - w;
        add_(x, in[0]);
        apply_(ops::sin, x);
        sub_(x, w);
        div_(x, 3);
        masked_fill_(x, greater(in[0], 0.5), 0.25);
        return {mean(x), x};
      },
      {w});
}

PROGRAM(slice_assign_in_place) {
  p.input({4, 4});
  const Tensor w = p.parameter("w", {2, 2});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * 1;
        slice_assign_(x, {1, 1}, {3, 3}, w);
        slice_assign_(x, {0, 0}, {4, 4}, {3, 3}, 2);
        return {sum(tanh(x)), x};
      },
      {w});
}

PROGRAM(zeroed_and_filled) {
  p.input({5});
  const Tensor w = p.parameter("w", {5});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w, y = in[0] + w;
        zero_(slice(x, 0, 0, 2));
        fill_(slice(y, 0, 2, 5), 1.5);
        return {sum(x * y), x, y};
      },
      {w});
}

PROGRAM(concat_and_split) {
  p.input({2, 3});
  p.input({4, 3});
  const Tensor w = p.parameter("w", {6, 3});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor all = concat({in[0], in[1]}, 0) * w;
        const Tensors parts = split(all, {1, 2, 3});
        return {sum(parts[0]) + mean(parts[1] * parts[1]) + sum(exp(parts[2])), parts[1]};
      },
      {w});
}

PROGRAM(concat_of_one_thing_many_times) {
  p.input({2, 3});
  const Tensor w = p.parameter("w", {2, 3});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = in[0] * w;
        return {mean(square(concat({x, x, w, x}, 1)))};
      },
      {w});
}

// Each layer reads the results of all layers before it, so the joined lists can be one growing buffer. Half of this buffer
// is read directly and half through a view.
PROGRAM(a_growing_concat) {
  p.input({3, 4});
  const Tensor w = p.parameter("w", {4, 4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        Tensors all = {tanh(in[0])};
        for (int i = 0; i < 6; ++i) {
          const Tensor so_far = all.size() == 1 ? all[0] : concat(all, 1);
          all.push_back(sin(matmul(slice(so_far, 1, 4 * i, 4 * i + 4), w) + all[static_cast<std::size_t>(i) / 2]));
        }
        const Tensor whole = concat(all, 1);
        return {mean(square(whole)), whole};
      },
      {w});
}

// Joins of joins along both axes, of padded and of repeated values; a stack joins the results.
PROGRAM(joins_within_joins) {
  p.input({2, 3});
  const Tensor w = p.parameter("w", {2, 3});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor a = in[0] * w, b = exp(-a), c = tanh(w);
        const Tensor rows = concat({concat({a, b}, 1), concat({b, c}, 1)}, 0);
        const Tensor wide = concat({rows, pad(concat({c, a}, 0), {0, 0}, {0, 1})}, 1);
        return {sum(sin(stack({wide, wide * 0.5, exp(wide)}, 1))), slice(wide, 1, 2, 8)};
      },
      {w});
}

PROGRAM(stack_and_unbind) {
  p.input({3, 2, 4});
  const Tensor w = p.parameter("w", {2, 4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        Tensors rows = unbind(in[0]);
        for (Tensor& r : rows) r = r * w;
        return {sum(sin(stack({rows[2], rows[0]}, 1))), rows[1]};
      },
      {w});
}

PROGRAM(pieces_that_cover) {
  p.input({4, 4});
  const Tensor w = p.parameter("w", {4, 4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        Tensor total;
        for (int i = 0; i < 2; ++i)
          for (int j = 0; j < 2; ++j) {
            const Tensor quadrant = slice(w, {2 * i, 2 * j}, {2 * i + 2, 2 * j + 2});
            const Tensor piece = sum(quadrant * (i + 2 * j + 1) * slice(in[0], {2 * j, 2 * i}, {2 * j + 2, 2 * i + 2}));
            total = total.defined() ? total + piece : piece;
          }
        return {total};
      },
      {w});
}

PROGRAM(duplicated_outputs) {
  p.input({3});
  const Tensor w = p.parameter("w", {3});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor y = tanh(in[0] * w);
        const Tensor loss = sum(y);
        return {loss, y, y, loss, reshape(y, {3, 1})};
      },
      {w});
}

PROGRAM(output_is_input) {
  p.input({3});
  p.input({2}, {0, 9}, DType::i64);
  p.step([](const Tensors& in) -> Tensors { return {in[0], in[1], in[0] + 1, slice(in[0], 0, 1, 3)}; });
}

PROGRAM(output_is_state) {
  p.input({3});
  const Tensor b = p.buffer("b", {3}), c = p.buffer("c", {3});
  p.step([=](const Tensors& in) -> Tensors {
    const Tensor before = b * 1;
    add_(b, in[0]);
    copy_(c, before);
    return {b, slice(b, 0, 0, 2), c};
  });
}

PROGRAM(states_trade_places) {
  p.input({4});
  const Tensor a = p.buffer("a", {4}), b = p.buffer("b", {4});
  p.step([=](const Tensors& in) -> Tensors {
    const Tensor kept = copy(a);
    copy_(a, b);
    copy_(b, kept);
    return {a - b, in[0] * a};
  });
}

PROGRAM(state_written_through_windows) {
  p.input({2});
  const Tensor ring = p.buffer("ring", {3, 2});
  p.step([=](const Tensors& in) -> Tensors {
    const Tensor older = copy(slice(ring, 0, 0, 2));
    slice_assign_(ring, {1, 0}, {3, 2}, older);
    slice_assign_(ring, {0, 0}, {1, 2}, in[0]);
    return {mean(ring, {0})};
  });
}

PROGRAM(dead_code_and_reuse) {
  p.input({4, 4});
  const Tensor w = p.parameter("w", {4, 4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor unused = exp(matmul(in[0], w));
        const Tensor never = unused + 1;
        const Tensor h = matmul(in[0], w), again = matmul(in[0], w);
        return {mean(h * again + h)};
      },
      {w});
}

PROGRAM(broadcast_every_way) {
  p.input({4, 1, 3});
  p.input({5, 1});
  const Tensor a = p.parameter("a", {3}), b = p.parameter("b", {}), c = p.parameter("c", {1, 5, 1});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor y = (in[0] + in[1]) * a - b / (square(c) + 1);
        return {mean(y), sum(maximum(y, b), {1})};
      },
      {a, b, c});
}

PROGRAM(expanded_and_summed) {
  p.input({3, 1});
  const Tensor w = p.parameter("w", {1, 4});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor wide = broadcast_to(w, {3, 4}) * expand(in[0], {-1, 4});
        return {sum(square(wide)), tile(in[0], {2, 2}), repeat_interleave(in[0], 2, 0)};
      },
      {w});
}

PROGRAM(sizes_of_zero_and_one) {
  p.input({0, 3});
  p.input({1, 1});
  const Tensor w = p.parameter("w", {1, 3});
  p.train(
      [=](const Tensors& in) -> Tensors {
        return {sum(in[0] * w) + sum(in[1] * w), in[0] * w, concat({in[0], w}, 0)};
      },
      {w});
}

PROGRAM(movement) {
  p.input({2, 3, 4});
  const Tensor w = p.parameter("w", {4, 3, 2});
  p.train(
      [=](const Tensors& in) -> Tensors {
        const Tensor x = transpose(in[0], {2, 1, 0}) * w;
        const Tensor y = roll(flip(x, {0, 2}), {1, 1}, {1, 0});
        return {sum(pad(y, {1, 0, 0}, {0, 1, 0}) * 2) + sum(tril(select(y, 2, 0))), movedim(y, 0, 2), swapaxes(x, 0, 1)};
      },
      {w});
}

}  // namespace tapedeck::agree
