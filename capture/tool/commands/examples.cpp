// The examples of all commands. Files have the same names everywhere: c.tape is a captured step, p.tape the same step with a
// plan, q.tape a step with other weights, g.graph a graph as text.
#include <tapedeck/capture/tool/line/examples.h>

namespace tapedeck::tool {

namespace {

constexpr CommandExample kExamples[] = {
    {"record", "tapedeck record cnn --batch 64 -o c.tape", "Capture a training step of a small net."},
    {"record", "tapedeck record resnet18 --abstract -o r.tape",
     "Types alone: takes milliseconds, whatever the size of the model."},
    {"record", "tapedeck record cnn --batch 64 --weights c.tape -o q.tape",
     "Begin with the weights of a file, PyTorch's or our own."},
    {"info", "tapedeck info c.tape", "Parameters, FLOPs, ops, inputs and state."},
    {"info", "tapedeck info p.tape --json", "The same for a program."},
    {"print", "tapedeck print c.tape", "The captured graph."},
    {"print", "tapedeck print c.tape --after cse", "The graph behind a pass of the planner."},
    {"print", "tapedeck print p.tape --planned", "The planned graph, with segments and offsets."},
    {"verify", "tapedeck verify p.tape", "Exit code 3 if the file, its graph or its plan is damaged."},
    {"view", "tapedeck view p.tape", "Open a window."},
    {"view", "tapedeck view p.tape --panel tradeoff --shot t.png", "Draw a panel, without a window or a display."},
    {"compare", "tapedeck compare c.tape q.tape --rtol 1e-5", "Exit code 1 if graphs, plans or numbers differ."},
    {"new", "tapedeck new hello", "Write the project into the folder hello."},
    {"run", "tapedeck run hello/main.cpp", "Compile the script, and run it."},
    {"run", "tapedeck run --view hello/main.cpp", "See the step that it captured."},
    {"plan", "tapedeck plan c.tape", "Keep everything, and print the peak and the floor."},
    {"plan", "tapedeck plan c.tape --budget 60% -o p.tape", "Recompute, so that the peak is 60 % of that."},
    {"plan", "tapedeck plan c.tape --budget 60% --explain peak", "Say what lives at the peak, and what would lower it."},
    {"plan", "tapedeck plan c.tape --budget 60% --explain choices", "What was decided about each value, and why."},
    {"plan", "tapedeck plan c.tape --budget 60% --explain relu.3", "One value, and what the other choice would cost."},
    {"plan", "tapedeck plan c.tape --recompute op:relu", "Keep no result of relu for backward."},
    {"plan", "tapedeck plan c.tape --threads 4 --csv buffers.csv", "For four threads, with a list of all buffers."},
    {"sweep", "tapedeck sweep c.tape --points 8", "What memory costs in time, for every strategy."},
    {"sweep", "tapedeck sweep c.tape --strategies auto,greedy --svg c.svg", "A picture of two strategies and the bound."},
    {"maxbatch", "tapedeck maxbatch lenet --memory 8MiB", "The largest batch of a model in 8 MiB."},
    {"maxbatch", "tapedeck maxbatch c.tape --batch 64 --memory 64MiB --cost-limit 1.2", "Of a file, by its bytes per row."},
    {"offsets", "tapedeck offsets buffers.csv --anew", "Place the buffers, and print the bytes that they take."},
    {"offsets", "tapedeck offsets buffers.csv --anew -o placed.csv", "Write their offsets."},
    {"replay", "tapedeck replay p.tape --steps 5", "Five steps; outputs of one element are printed."},
    {"replay", "tapedeck replay p.tape --steps 3 --check-eager", "Compare every bit with eager execution."},
    {"replay", "tapedeck replay p.tape --input x=rand:1 -o results", "Another input; the outputs go to files."},
    {"replay", "tapedeck replay c.tape --dims batch=8 --budget 70%", "Another batch, planned anew."},
    {"bench", "tapedeck bench p.tape --threads 1,2", "The time of a step on one and on two threads."},
    {"bench", "tapedeck bench lenet", "A model by its name."},
    {"bench", "tapedeck bench p.tape --roofline --threads 1 --top 5",
     "The five nodes that lose the most against the peaks of this machine."},
    {"calibrate", "tapedeck calibrate", "Measure this machine."},
    {"calibrate", "tapedeck calibrate --show", "Print what is known of it."},
    {"opt", "tapedeck opt g.graph", "The graph behind all passes."},
    {"opt", "tapedeck opt g.graph --pass cse,dead_code", "The graph behind two."},
    {"gradient", "tapedeck gradient g.graph --of %loss --wrt %w -o b.graph", "Forward and backward in one graph."},
    {"export", "tapedeck export dot c.tape -o c.dot", "For Graphviz: dot -Tsvg c.dot > c.svg."},
    {"export", "tapedeck export onnx c.tape -o c.onnx", "The step as a model in the ONNX format, with its weights."},
    {"export", "tapedeck export jsonl p.tape --planned", "The planned graph, a JSON object for each node."},
    {"reduce", "tapedeck reduce g.graph --check '! grep -q exp {}'", "The smallest graph that has an exp."},
    {"models", "tapedeck models", "A table with parameters and sizes."},
    {"models", "tapedeck models -q", "The names alone."},
    {"ops", "tapedeck ops", "A line for each op."},
    {"settings", "tapedeck settings", "The variables, and their values now."},
    {"devices", "tapedeck devices", "Whether there is a GPU that can be used."},
    {"man", "tapedeck man -o tapedeck.1", "Read it by man ./tapedeck.1."},
    {"completions", "tapedeck completions bash", "For ~/.bashrc: source <(tapedeck completions bash)."},
};

[[maybe_unused]] const bool examples_registered = register_examples(kExamples);

}  // namespace

}  // namespace tapedeck::tool
