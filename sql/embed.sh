#!/bin/sh
# Writes the table of embedded SQL files for embed.c. The checksums make the output differ when a file's content does,
# and with it what the compiler depends on.
n=0
for f in "$@"; do
    printf 'SQL_FILE(%d, "%s", "%s") /* %s */\n' "$n" "$(basename "$f")" "$f" "$(sha256sum <"$f")"
    n=$((n + 1))
done
