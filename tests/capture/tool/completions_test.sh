#!/usr/bin/env bash
# The help and the completions of every shell come from one table: each script has every command and every option of the help.
. "$(dirname "${BASH_SOURCE[0]}")/check.bash"

expect 0 --help; quiet
sed -nE '/^Begin with/q; s/^  ([a-z]+) +[A-Z].*/\1/p' out > commands
[ "$(wc -l < commands)" = 26 ] || fail "the help lists $(wc -l < commands) commands: $(tr '\n' ' ' < commands)"
for shell in bash zsh fish; do
  expect 0 completions $shell; quiet; cp out script.$shell
done
expect 2 completions; said "SHELL is missing"; expect 2 completions tcsh; said "bash, zsh, fish"

# The lines of one command in a script.
lines_of() {
  case $2 in
    bash) grep -E "^    ($1/|$1\))" script.bash ;;
    zsh) sed -n "/^        $1)\$/,/;;\$/p" script.zsh ;;
    fish) grep -F "__fish_seen_subcommand_from $1'" script.fish ;;
  esac
}
# grep reads all of its input here (no -q): a grep that ends early would end lines_of by a broken pipe.
options=0
while read -r command; do
  grep -qF -- " $command " script.bash || fail "bash lacks $command"
  grep -qF -- "'$command:" script.zsh || fail "zsh lacks $command"
  grep -qF -- "-a $command -d" script.fish || fail "fish lacks $command"
  expect 0 "$command" --help; quiet
  sed -nE 's/^  (-[a-z], )?--([a-z-]+).*/\2/p' out > long
  sed -nE 's/^  -([a-z]), .*/\1/p' out > short
  for option in $(grep -v '^help$' long); do
    options=$((options + 1))
    lines_of "$command" bash | grep -E -- "--$option[ ')]" > /dev/null || fail "bash: $command lacks --$option"
    lines_of "$command" zsh | grep -E -- "--$option(\[|=)" > /dev/null || fail "zsh: $command lacks --$option"
    lines_of "$command" fish | grep -E -- "-l $option " > /dev/null || fail "fish: $command lacks --$option"
  done
  for letter in $(grep -v '^h$' short); do
    lines_of "$command" bash | grep -E -- "-$letter[ ')]" > /dev/null || fail "bash: $command lacks -$letter"
    lines_of "$command" zsh | grep -F -- "-$letter[" > /dev/null || fail "zsh: $command lacks -$letter"
    lines_of "$command" fish | grep -E -- "-s $letter " > /dev/null || fail "fish: $command lacks -$letter"
  done
done < commands
[ "$options" -ge 80 ] || fail "only $options options were compared"

# The manual page has the same commands and options, and is read by those who set it.
expect 0 man; quiet; cp out tapedeck.1
expect 0 man -o page.1; cmp -s page.1 tapedeck.1 || fail "man -o writes another page"
for title in NAME SYNOPSIS OPTIONS COMMANDS 'EXIT STATUS' ENVIRONMENT EXAMPLES; do grep -qx ".SH $title" tapedeck.1 || fail "the page lacks $title"; done
paged=0
while read -r command; do
  sed -n "/^\.SS $command\$/,/^\.S[SH]/p" tapedeck.1 | sed 's/\\-/-/g' > part
  expect 0 "$command" --help
  for option in $(sed -nE 's/^  (-[a-z], )?--([a-z-]+).*/\2/p' out | grep -v '^help$'); do
    paged=$((paged + 1))
    grep -qE -- "^.fB.*--$option([ \\]|$)" part || fail "the page: $command lacks --$option"
  done
done < commands
[ "$paged" = "$options" ] || fail "the page was asked for $paged of $options options"
grep -nE "^'|^\.[^A-Znf]" tapedeck.1 && fail "a line begins like a request"
for program in 'groff -man -ww -z' 'mandoc -T lint -W error'; do
  if command -v ${program%% *} > /dev/null; then $program tapedeck.1 > lint 2>&1; [ -s lint ] && fail "$program: $(head -3 lint)"; fi
done

# What bash offers: complete WORDS... leaves the offers, one a line, in `offers`.
touch one.tape
. ./script.bash
complete_words() {
  COMP_WORDS=(tapedeck "$@"); COMP_CWORD=$#; COMPREPLY=()
  _tapedeck
  printf '%s\n' "${COMPREPLY[@]}" > offers
}
offers() { grep -qxF -- "$1" offers || fail "${COMP_WORDS[*]} offers no '$1': $(head -c 300 offers)"; }
complete_words ''; while read -r command; do offers "$command"; done < commands; offers --version; offers --load
complete_words pl; [ "$(cat offers)" = plan ] || fail "pl is completed to $(cat offers)"
complete_words --load lib.so rec; offers record
complete_words plan --st; [ "$(cat offers)" = --strategy ] || fail "--st is completed to $(cat offers)"
complete_words plan --strategy ''; offers regions; offers auto
complete_words plan --strategy = g; [ "$(cat offers)" = greedy ] || fail "--strategy=g is completed to $(cat offers)"
complete_words sweep --strategies ''; offers all; offers greedy; complete_words sweep one --svg one; offers one.tape
complete_words plan one; offers one.tape
complete_words plan --explain ''; offers peak
complete_words plan -o one; offers one.tape
complete_words record re; offers resnet152
complete_words opt one.tape --pass cs; offers cse
complete_words import ''; offers graph; offers simrd; complete_words import graph one; offers one.tape
complete_words export ''; offers dot; offers jsonl; offers onnx; complete_words export dot one; offers one.tape; complete_words compare one.tape one; offers one.tape
complete_words replay one.tape -o one; offers one.tape; complete_words replay one.tape --phase b; [ "$(cat offers)" = backward ] || fail "--phase b is completed to $(cat offers)"
complete_words run one; offers one.tape; complete_words run --vi; [ "$(cat offers)" = --view ] || fail "--vi is completed to $(cat offers)"
complete_words completions ''; offers fish
complete_words plan --budget ''; [ -z "$(cat offers)" ] || fail "a size is completed to $(cat offers)"

for shell in zsh fish; do
  if command -v $shell > /dev/null; then $shell -n script.$shell || fail "$shell does not read its script"; fi
done
finish
