/* payonce receipt: what a buyer does with one. */
#include <stdio.h>
#include <string.h>

#include "api/commands.h"

int receipt_main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "verify") == 0)
        return receipt_verify(argc, argv);
    if (argc > 1 && strcmp(argv[1], "fetch") == 0)
        return receipt_fetch(argc, argv);
    fputs("usage: payonce receipt fetch URL [--key-file FILE] [--network ID]     the answer that was paid for, once more\n"
          "       payonce receipt verify FILE|URL [--signer ADDRESS] [--rpc URL] is it what was signed, and does the chain agree?\n",
          stderr);
    return EXIT_USAGE;
}
