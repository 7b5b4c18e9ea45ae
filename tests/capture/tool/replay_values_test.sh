#!/usr/bin/env bash
# tapedeck replay: inputs from files of every kind, from stdin, and one file a step; outputs and weights to files; expected values.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -rf ./*.tape ./*.graph ./*.npy ./*.npz ./*.raw ./*.safetensors out steps empty other

# y = x * x, and the sum of it; x is [1,2,3] in a.raw and [3,4,5] in b.raw.
printf 'graph g(%%x: f32[3]) {\n  %%y: f32[3] = mul(%%x, %%x)\n  %%s: f32[] = sum(%%y) {axes=[0], keepdims=false}\n  return %%y, %%s\n}\n' > g.graph
one='\x00\x00\x80\x3f' two='\x00\x00\x00\x40' three='\x00\x00\x40\x40' four='\x00\x00\x80\x40' five='\x00\x00\xa0\x40'
# shellcheck disable=SC2059
{ printf "$one$two$three" > a.raw; printf "$three$four$five" > b.raw; }
npy() { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)}"; cat "$1"; }
npy a.raw > a.npy; npy b.raw > b.npy
lines() { sed -n 's/^step //p' out | tr '\n' ' '; }
steps_are() { [ "$(lines)" = "$1 " ] || fail "the lines of the steps are '$(lines)', not '$1 '"; }

# One value from a file of each kind, with @ and without, and from stdin.
for file in a.raw a.npy @a.raw @a.npy ./a.raw; do expect 0 replay g.graph --input "x=$file"; quiet; steps_are '1: s 14'; done
"$tool" replay g.graph --input x=- < a.raw > out 2> err || fail "raw stdin: $(cat err)"; steps_are '1: s 14'
"$tool" replay g.graph --input x=- --steps 3 < a.npy > out 2> err || fail "npy stdin: $(cat err)"; steps_are '1: s 14 2: s 14 3: s 14'
# One a step through stdin, npy and raw in turn; too few are an error, none are an error.
cat a.raw b.npy a.npy | "$tool" replay g.graph --input x=- --steps 3 > out 2> err || fail "three through stdin: $(cat err)"; steps_are '1: s 14 2: s 50 3: s 14'
cat a.raw b.npy | "$tool" replay g.graph --input x=- --steps 3 > out 2> err; [ $? = 3 ] || fail "two values for three steps"; said "stdin: it ended after 2 values of 'x'"
"$tool" replay g.graph --input x=- < /dev/null > out 2> err; [ $? = 3 ] || fail "an empty stdin"; said "no value for the input 'x'"
head -c 5 a.raw | "$tool" replay g.graph --input x=- > out 2> err; [ $? = 3 ] || fail "half a value"; said "it ended after 5 of the 12 bytes of f32[3]"

# A folder and a pattern give a file for each step, in the order of names, from the first again after the last.
mkdir -p steps empty other; ln -sf nowhere steps/.lock; cp b.raw steps/02.raw; cp a.npy steps/01.npy; cp a.raw steps/03.bin; cp a.raw other/1.raw
expect 0 replay g.graph --input x=steps; quiet; steps_are '1: s 14 2: s 50 3: s 14'
expect 0 replay g.graph --input x=steps --steps 5 --check-eager; steps_are '1: s 14 2: s 50 3: s 14 4: s 14 5: s 50'; answered 'equal to eager yes'
expect 0 replay g.graph --input 'x=steps/0[12].*' ; steps_are '1: s 14 2: s 50'
expect 0 replay g.graph --input x=other --steps 2; steps_are '1: s 14 2: s 14'
expect 3 replay g.graph --input x=empty; said 'empty: the folder holds no files'
expect 3 replay g.graph --input 'x=steps/9*'; said 'steps/9*: no file has such a name'
printf 'graph h(%%x: f32[3], %%w: f32[3]) {\n  %%y: f32[3] = mul(%%x, %%w)\n  return %%y\n}\n' > h.graph
expect 2 replay h.graph --input x=steps 'w=steps/0[12]*'; said "'x' has 3 files and 'w' has 2"
expect 2 replay h.graph --input x=- w=- ; said 'two inputs cannot both be read from stdin'

# What does not fit is refused with its name.
head -c 8 a.raw > short.raw; expect 3 replay g.graph --input x=short.raw; said 'short.raw: 8 bytes, but f32[3] takes 12'
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}" > u.npy; printf '\x01' >> u.npy
expect 3 replay g.graph --input x=u.npy; said "u.npy: u8[1], but the input 'x' is f32[3]"
expect 2 replay g.graph --input x=sometimes; said 'stdin, rand:SEED or zeros'
expect 3 replay g.graph --input x=missing.raw; said 'missing.raw'

# Outputs: a folder, a file of all, one by name; and the same places as what is expected.
expect 0 replay g.graph --input x=a.raw -o out_1; quiet; answered 'wrote          out_1/s.npy'; answered 'wrote          out_1/y.npy'; rm -rf out_1
expect 0 replay g.graph --input x=a.raw -o out_1/; [ -f out_1/y.npy ] || fail "a slash behind the name of a folder"; expect 0 replay g.graph --input x=a.raw -o out_1/ -o .; rm -rf out_1 y.npy s.npy
expect 0 replay g.graph --input x=a.raw -o out.safetensors --output y=y.npy -o s=s.safetensors; quiet
expect 0 replay g.graph --input x=a.raw -o folder_a; expect 0 replay g.graph --input x=steps/02.raw -o folder_b
cmp -s y.npy folder_a/y.npy || fail "y.npy alone and y.npy of the folder differ"
for place in folder_a out.safetensors y=y.npy y=out.safetensors s=s.safetensors; do
  expect 0 replay g.graph --input x=a.raw --expect "$place"; quiet; answered 'as expected'
done
expect 0 replay g.graph --input x=folder_a/y.npy; steps_are '1: s 98'
expect 0 replay g.graph --input x=y.npy -o y.safetensors; rm -f y.safetensors

# The first and the worst difference, with names and numbers; exit 1.
expect 1 replay g.graph --input x=a.raw --expect folder_b; quiet
answered "'y' from folder_b/y.npy: 3 of 3 elements differ; first [0]: got 1, expected 9 (absolute 8, relative 0.889); worst [2]: got 9, expected 25 (absolute 16, relative 0.64)"
answered "'s' from folder_b/s.npy"
expect 1 replay g.graph --input x=a.raw --expect y=folder_b/y.npy --atol 12; answered '1 of 3 elements differs; first [2]: got 9, expected 25'; grep -q worst out && fail "one difference has no worst beside it"
expect 0 replay g.graph --input x=a.raw --expect y=folder_b/y.npy --rtol 0.9; expect 0 replay g.graph --input x=a.raw --expect y=folder_b/y.npy --atol 16
expect 1 replay g.graph --input x=a.raw --expect y=folder_b/y.npy --atol 15; expect 0 replay g.graph --input x=a.raw --expect y=folder_b/y.npy --atol 8 --rtol 0.35
expect 1 replay g.graph --input x=a.raw --expect folder_b --json; quiet
for key in expected equal outputs name file elements differing first worst index got absolute relative; do answered "\"$key\":"; done
expect 1 replay g.graph --input x=a.raw --expect y=folder_a/s.npy; answered 'got f32[3], expected f32[]'
# Half of what is expected is compared, and the other half is noted; nothing at all is an error.
rm folder_b/s.npy; expect 1 replay g.graph --input x=a.raw --expect folder_b; said 'not compared, because not there: s'
expect 1 replay g.graph --input x=a.raw --expect folder_b -q; quiet
expect 3 replay g.graph --expect empty; said 'no value of any output: y, s'
expect 3 replay g.graph --expect nosuch; said 'neither a folder'; expect 3 replay g.graph --expect y=missing.npy
expect 2 replay g.graph --expect z=y.npy; said "there is no output 'z'"; said 'the outputs are: y, s'
expect 2 replay g.graph --rtol 1; said 'need --expect'; expect 2 replay g.graph --expect folder_a --atol -1; expect 2 replay g.graph --expect folder_a --rtol nan

# Places that cannot be written cost no work and are named.
expect 2 replay g.graph -o y=y.txt; said 'must end in .npy or .safetensors'; expect 2 replay g.graph -o nosuch=y.npy; said "there is no output 'nosuch'"
expect 2 replay g.graph -o -; expect 3 replay g.graph -o a.raw; said 'it is no folder'; expect 3 replay g.graph -o no/such/folder; said 'is no folder'
expect 2 replay g.graph --input x=a.npy -o y=a.npy; said 'it would overwrite a.npy, which is read'
expect 2 replay g.graph -o y=z.npy -o s=./z.npy; said 'are one file'; absent z.npy
expect 2 replay g.graph --input x=folder_a/y.npy -o folder_a; said 'it would overwrite'
printf 'graph b(%%x: bf16[2]) {\n  %%y/../z: bf16[2] = neg(%%x)\n  return %%y/../z\n}\n' > b.graph
if "$tool" verify b.graph > /dev/null 2>&1; then  # a name that would leave the folder stays in it
  expect 0 replay b.graph -o folder_c; [ "$(ls folder_c)" = 'y%2F..%2Fz.safetensors' ] || fail "the folder holds: $(ls folder_c)"
fi
printf 'graph b(%%x: bf16[2]) {\n  %%y: bf16[2] = neg(%%x)\n  return %%y\n}\n' > b.graph
expect 2 replay b.graph -o y=y2.npy; said 'NumPy has no dtype for bf16'; absent y2.npy
expect 0 replay b.graph -o folder_d; [ -f folder_d/y.safetensors ] || fail "bf16 is not in a safetensors file"; expect 0 replay b.graph --expect folder_d

# Trained weights out, and in again: two steps are one and one.
expect 0 record mlp --batch 4 -o m.tape
expect 0 replay m.tape --steps 2 --save two.safetensors; expect 0 replay m.tape --save one.safetensors
expect 0 replay m.tape --weights one.safetensors --save oneone.safetensors; quiet; cmp -s two.safetensors oneone.safetensors || fail "2 steps and 1 + 1 steps differ"
expect 2 replay m.tape --weights one.safetensors --save one.safetensors; said 'it would overwrite'

# Archives of arrays, as Python writes them.
if command -v python3 > /dev/null; then
  python3 - << 'P'
import zipfile
with zipfile.ZipFile("x.npz", "w") as z:
    for name, file in (("x", "b.npy"), ("other", "a.npy")):
        with z.open(name + ".npy", "w", force_zip64=True) as f:
            f.write(open(file, "rb").read())
with zipfile.ZipFile("packed.npz", "w", zipfile.ZIP_DEFLATED) as z:  # in the way of numpy.savez_compressed
    for name, file in (("x", "b.npy"), ("other", "a.npy")):
        with z.open(name + ".npy", "w", force_zip64=True) as f:
            f.write(open(file, "rb").read())
P
  expect 0 replay g.graph --input x=x.npz; quiet; steps_are '1: s 50'
  expect 3 replay g.graph --input x=a.raw --expect y=x.npz; said "none of its 2 tensors is named 'y'"
  expect 0 replay g.graph --input x=packed.npz; quiet; steps_are '1: s 50'
  expect 3 replay h.graph --input w=x.npz; said "none of its 2 tensors is named 'w'"
  cp x.npz cut.npz; truncate -s -30 cut.npz; expect 3 replay g.graph --input x=cut.npz; said 'not a readable .npz file'
  cp packed.npz cut.npz; truncate -s -30 cut.npz; expect 3 replay g.graph --input x=cut.npz; said 'not a readable .npz file'
fi
rm -rf folder_a folder_b folder_c folder_d
finish
