#!/usr/bin/env bash
# tapedeck offsets: from a list of buffers to the list with offsets; what is wrong with a list is said with its line.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"
rm -f ./*.csv ./*.out

printf 'id,lower,upper,size\na,0,4,100\nb,2,6,50\nc,4,8,100\nd,6,9,120\n' > b.csv
expect 0 offsets b.csv -o o.csv; quiet
for word in peak 'lower bound' 'none can be lower'; do answered "$word"; done
[ "$(head -1 o.csv)" = id,lower,upper,size,offset ] || fail "header: $(head -1 o.csv)"
[ "$(wc -l < o.csv)" = 5 ] || fail "$(cat o.csv)"
# No two that are alive together overlap, by awk.
overlaps() {
  awk -F, 'NR > 1 { l[NR] = $2; u[NR] = $3; s[NR] = $4; o[NR] = $NF
    for (k = 2; k < NR; ++k) if (l[k] < u[NR] && l[NR] < u[k] && o[k] < o[NR] + s[NR] && o[NR] < o[k] + s[k]) ++n } END { print n + 0 }' "$1"
}
[ "$(overlaps o.csv)" = 0 ] || fail "overlaps: $(cat o.csv)"

expect 0 offsets b.csv --json; quiet
for key in schema buffers lower_bound peak optimal seconds; do answered "\"$key\":"; done
answered '"schema": "tapedeck.offsets/1"'; answered '"optimal": true'
[ "$(number peak)" = 220 ] && [ "$(number lower_bound)" = 220 ] && [ "$(number buffers)" = 4 ] || fail "$(cat out)"

# Its own answer is a list: the offsets in it are fixed.
expect 0 offsets o.csv -o again.csv; cmp -s o.csv again.csv || fail "fixed offsets moved: $(cat again.csv)"
expect 0 offsets - --json < b.csv; [ "$(number peak)" = 220 ] || fail "stdin: $(cat out)"
printf 'buffer,begin,end,size,gaps\na,0,9,100,3-6\nb,3,5,100,\n' > gaps.csv
expect 0 offsets gaps.csv --json; [ "$(number peak)" = 100 ] || fail "gaps: $(cat out)"
expect 0 offsets b.csv --align 64 --json; [ "$(number peak)" -ge 220 ] || fail "$(cat out)"
expect 0 offsets b.csv --align 64 -o aligned.csv; awk -F, 'NR > 1 && $NF % 64 { exit 1 }' aligned.csv || fail "not aligned: $(cat aligned.csv)"
expect 0 offsets b.csv --chunk 130 -o chunks.csv --json; [ "$(number arenas)" -ge 2 ] || fail "$(cat out)"
[ "$(head -1 chunks.csv)" = id,lower,upper,size,offset,arena ] || fail "header: $(head -1 chunks.csv)"
# Offsets within several arenas are no fixed ones; placed anew, the arenas of before are gone. Of one arena they are as good as any.
printf 'id,lower,upper,size\na,0,4,100\nb,0,4,100\nc,0,4,100\n' > three.csv
expect 0 offsets three.csv --chunk 130 -o in_three.csv
expect 2 offsets in_three.csv -o x.csv; said 'in_three.csv:2: buffer a has an offset in one of several arenas'; said --anew; absent x.csv
expect 0 offsets in_three.csv --anew -o x.csv; [ "$(head -1 x.csv)" = id,lower,upper,size,offset ] || fail "header: $(head -1 x.csv)"
[ "$(overlaps x.csv)" = 0 ] || fail "$(cat x.csv)"; rm -f x.csv
expect 0 offsets in_three.csv --anew --chunk 250 -o x.csv; [ "$(head -1 x.csv)" = id,lower,upper,size,offset,arena ] || fail "header: $(head -1 x.csv)"
[ "$(awk -F, 'NR > 1 { print $6 }' x.csv | sort -u | wc -l)" = 2 ] || fail "arenas: $(cat x.csv)"; rm -f x.csv
expect 0 offsets three.csv --chunk 400 -o in_one.csv; expect 0 offsets in_one.csv --json; [ "$(number peak)" = 300 ] || fail "$(cat out)"
printf 'id,lower,upper,size\n' > none.csv; expect 0 offsets none.csv --json; [ "$(number peak)" = 0 ] || fail "$(cat out)"

# What fixed offsets leave undecided for several arenas is asked back.
expect 2 offsets o.csv --chunk 130 -o x.csv; said 'o.csv:2: buffer a has an offset'; said --anew; absent x.csv
expect 0 offsets o.csv --chunk 130 --anew --json; quiet

# A list for the next in a pipe: nothing else is in it.
expect 0 offsets b.csv -o -; cmp -s out o.csv || fail "-o -: $(cat out)"; said 'lower bound'; absent ./-
expect 0 offsets b.csv -o - --json; cmp -s out o.csv || fail "-o - --json: $(cat out)"; said '"schema": "tapedeck.offsets/1"'
expect 0 offsets - -o - < b.csv; cmp -s out o.csv || fail "- -o -: $(cat out)"; said 'stdin: 4 buffers'

# What a blank line cuts off is not silently gone.
{ cat b.csv; printf '\nz,0,1,1\n \n# more\n'; } > tail.csv; expect 0 offsets tail.csv -o x.csv; said 'tail.csv: warning: 2 lines after line 6 are not read'
cmp -s x.csv o.csv || fail "tail.csv: $(cat x.csv)"; rm -f x.csv
{ cat b.csv; printf '\n\n  \n'; } > blank.csv; expect 0 offsets blank.csv; quiet

# What is proven may be more than the bytes alive at once: alignment, here.
printf 'id,lower,upper,size\na,0,4,3\nb,2,6,3\n' > apart.csv; expect 0 offsets apart.csv --align 4 --json
[ "$(number lower_bound)" = 6 ] && [ "$(number proven_bound)" = 7 ] && [ "$(number peak)" = 7 ] || fail "$(cat out)"
expect 0 offsets apart.csv --align 4; answered 'proven bound 7 bytes'; expect 0 offsets b.csv; ! grep -q proven out || fail "$(cat out)"

# Capacities: 4 if not met, with the best plan written.
expect 0 offsets b.csv --capacity 220 -o met.csv; answered ', met'
expect 4 offsets b.csv --capacity 219 -o best.csv; said 'more than the capacity'; answered 'not met'
[ "$(overlaps best.csv)" = 0 ] && [ "$(wc -l < best.csv)" = 5 ] || fail "the best plan: $(cat best.csv)"
expect 4 offsets b.csv --capacity 219 --json; answered '"schema": "tapedeck.offsets/1"'; [ "$(number capacity)" = 219 ] || fail "$(cat out)"

# Equal work, equal answer, whatever the threads.
awk 'BEGIN { srand(7); print "id,lower,upper,size"; for (i = 0; i < 150; ++i) { l = int(rand() * 100); print i "," l "," l + 1 + int(rand() * 20) "," 1 + int(rand() * 1000) } }' > r.csv
expect 0 offsets r.csv --work 300000 --threads 1 -o r1.out; expect 0 offsets r.csv --work 300000 --threads 2 -o r2.out
cmp -s r1.out r2.out || fail "other threads, another answer"
[ "$(overlaps r1.out)" = 0 ] || fail "overlaps in r1.out"
expect 0 offsets r.csv --seconds 0.2 --json
expect 0 offsets r.csv --work 0 --json

# Lines may end as elsewhere, fields have blanks about them, columns be anybody's; what looks like a misspelt one is spoken of.
awk '{ printf "%s\r\n", $0 }' b.csv > crlf.csv; expect 0 offsets crlf.csv -o x.csv; cmp -s x.csv o.csv || fail "crlf.csv: $(cat x.csv)"; quiet
sed 's/,/ , /g; s/^/ /' b.csv > blanks.csv; expect 0 offsets blanks.csv -o x.csv; cmp -s x.csv o.csv || fail "blanks.csv: $(cat x.csv)"; quiet
awk -F, '{ print $0 "," (NR == 1 ? "colour" : "red") }' b.csv > more.csv; expect 0 offsets more.csv -o x.csv; quiet
[ "$(sed -n 2p x.csv)" = a,0,4,100,red,0 ] || fail "more.csv: $(cat x.csv)"; rm -f x.csv
awk -F, '{ print $0 "," (NR == 1 ? "Offset" : 0) }' b.csv > caps.csv; expect 0 offsets caps.csv; said "caps.csv:1: warning: column 'Offset' is not looked at: did you mean 'offset'?"

# The file may be its own answer.
cp b.csv self.csv; expect 0 offsets self.csv -o self.csv; cmp -s self.csv o.csv || fail "in place: $(cat self.csv)"

# Nothing fits into nothing, and nothing does.
expect 4 offsets b.csv --capacity 0; answered 'not met'; expect 0 offsets none.csv --capacity 0; answered ', met'

# usage: 2
expect 2 offsets; expect 2 offsets b.csv --work 5 --seconds 1; expect 2 offsets b.csv --work -1; expect 2 offsets b.csv --seconds 0; expect 2 offsets b.csv --align 0
expect 2 offsets b.csv --seconds nan; said '--seconds: nan is not in the range 0.001 to 1000000'; expect 2 offsets b.csv --seconds inf; expect 2 offsets b.csv --work 1e6
expect 2 offsets b.csv --capacity lots; said "--capacity: 'lots' is not a size"; expect 2 offsets b.csv --capacity -1; expect 2 offsets b.csv --chunk 50%; said "--chunk: '50%'"; expect 2 offsets b.csv --chunk 0; expect 2 offsets b.csv --threads -1; expect 2 offsets b.csv more
expect 0 offsets --help; for word in --capacity --seconds --work --align --threads --chunk --output --json gzip; do answered "$word"; done

# files: 3, with the line
expect 3 offsets missing.csv; said missing.csv
expect 3 offsets .
head -c 25 b.csv > cut.csv; expect 3 offsets cut.csv -o x.csv; said 'cut.csv:'; absent x.csv
: > empty.csv; expect 3 offsets empty.csv; said 'empty.csv:1: error: no header row'
printf 'id,lower,upper,size\na,0,4,100\nb,2,1,50\n' > bad.csv; expect 3 offsets bad.csv -o x.csv; said 'bad.csv:3: error:'; absent x.csv
printf 'id,lower,upper,size,offset\na,0,4,100,0\nb,2,6,50,50\n' > clash.csv; expect 3 offsets clash.csv -o x.csv; absent x.csv
said 'clash.csv:3: error: buffer a and buffer b are fixed to bytes that overlap'
printf 'id,lower,upper,size,alignment\n"a,1",0,4,1,1152921504606846976\nb,0,4,1,1152921504606846976\nc,0,4,1,1152921504606846976\n%s\n' '"d ""4""",0,1,1,1152921504606846976' > large.csv
expect 3 offsets large.csv -o x.csv; said 'large.csv:5: error: buffer d \"\"4\"\" makes it'; said '2^62'; absent x.csv
printf 'PK\003\004\000\033[31m%0100d\n' 7 > binary.tape; expect 3 offsets binary.tape; said 'PK\x03\x04\x00\x1b[31m000'; said '...'
[ "$(LC_ALL=C tr -d '\n -~' < err | wc -c)" = 0 ] && [ "$(wc -c < err)" -le 220 ] || fail "repeats what it reads: $(od -c err | head)"
expect 3 offsets b.csv -o /no/such/folder/x.csv; expect 3 offsets b.csv -o .; expect 3 offsets bad.csv --json; answered '"schema": "tapedeck.error/1"'; answered 'bad.csv:3: error:'
printf 'buffer,start,end,size\na,0,4,100\na,2,6,50\n' > twice.csv; expect 3 offsets twice.csv; said 'twice.csv:3: error: buffer a is there already, in line 2'
printf 'buffer,start,end,size\na,0.5,4,100\n' > float.csv; expect 3 offsets float.csv; said "float.csv:2: error: start '0.5' is not a whole number"
printf 'id,lower,upper,size,gaps\na,0,4,100,1to2\n' > gap.csv; expect 3 offsets gap.csv; said "gap.csv:2: error: gap '1to2' is not of the form a-b"
for size in -1 9223372036854775807 9223372036854775808; do
  printf 'id,lower,upper,size\na,0,4,1\nb,0,4,%s\n' "$size" > size.csv; expect 3 offsets size.csv; said "size.csv:3: error: size $size is "
done

# Ctrl-C: the best so far is kept and written.
awk 'BEGIN { srand(3); print "id,lower,upper,size"; for (i = 0; i < 400; ++i) { l = int(rand() * 200); print i "," l "," l + 1 + int(rand() * 60) "," 1 + int(rand() * 100000) } }' > hard.csv
"$tool" offsets hard.csv --seconds 60 -o stopped.csv > out 2> err &
interrupt $!
[ $code = 130 ] || fail "Ctrl-C exits $code"
answered interrupted
[ "$(overlaps stopped.csv)" = 0 ] && [ "$(wc -l < stopped.csv)" = 401 ] || fail "nothing was kept"
finish
