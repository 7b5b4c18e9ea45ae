#!/bin/sh
# Runs a compiler through ccache: compile_cached.sh CCACHE COMPILER ARGUMENTS...
#
# ccache caches precompiled headers only with this sloppiness. Comments count: g++ takes a header for another one than the precompiled one if
# any byte of it differs, so a precompiled header from the cache must have the same comments.
#
# A precompiled header that is there already is removed before it is made again. While g++ preprocesses the headers for the new one, it would
# read the old one in their place, and ccache would find that nothing has changed.
#
# A precompiled header is looked up by the bytes of its headers alone. The text that the preprocessor makes of them has other spaces, so by that
# text ccache would return the header from before a change of spaces, and g++ would read a changed file a second time and stop.
export CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_COMMENTS=1
case " $* " in
  *" -x c++-header "*)
    export CCACHE_DEPEND=1
    before=
    for argument; do
      [ "$before" = -o ] && rm -f -- "$argument"
      before=$argument
    done
    ;;
esac
exec "$@"
