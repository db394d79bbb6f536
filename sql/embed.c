/* The SQL files become part of the program: sql_files.inc is made from meson.build's list. */
#include "sql/internal.h"

#define SQL_FILE(n, name, path)                                                                                        \
    __asm__(".pushsection .rodata\n"                                                                                   \
            ".global payonce_sql_" #n "\n"                                                                             \
            ".hidden payonce_sql_" #n "\n"                                                                             \
            "payonce_sql_" #n ":\n"                                                                                    \
            ".incbin \"" path "\"\n"                                                                                   \
            ".byte 0\n"                                                                                                \
            ".popsection\n");                                                                                          \
    extern const char payonce_sql_##n[];
#include "sql_files.inc"
#undef SQL_FILE

#define SQL_FILE(n, name, path) { name, payonce_sql_##n },
const struct sql_file sql_files[] = {
#include "sql_files.inc"
};
#undef SQL_FILE

const size_t sql_file_count = COUNT(sql_files);
